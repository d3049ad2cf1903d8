/* Models out of GGUF files: the container, the configuration, the binding of tensors, packing, and a pass. */
#include "model_check.h"
#include "parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = parts_memory(data, size, path);
    check_model(path);
    close(fd);
    return 0;
}
