/* config.json: an input is one, and it is tried with the weights of the small model of its family. */
#include "model_check.h"
#include "parts.h"

static bool says(const uint8_t *data, size_t size, const char *word)
{
    return size && memmem(data, size, word, strlen(word));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *family = says(data, size, "gemma2")     ? "gemma2"
                         : says(data, size, "gpt_neox") ? "neox-parallel"
                         : says(data, size, "gpt2")     ? "gpt2"
                                                        : "llama-gqa-bf16";
    char here[4096], weights[sizeof here + 80];
    if (!getcwd(here, sizeof here))
        abort();
    snprintf(weights, sizeof weights, "%s/tests/golden/models/%s/model.safetensors", here, family);
    parts_write("config.json", data, size);
    if (symlink(weights, parts_path("model.safetensors")))
        abort();
    check_model(parts_path(""));
    unlink(parts_path("model.safetensors"));
    unlink(parts_path("config.json"));
    return 0;
}
