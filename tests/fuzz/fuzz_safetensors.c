/* Headers of safetensors files: whatever is accepted tiles the data section. An input that begins with `{` is the
 * header alone (parts_safetensors). */
#include "io/safetensors.h"

#include "driver.h"
#include "parts.h"

static void check(const weir_tensor *t, int64_t n, const uint8_t *data, size_t size)
{
    size_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t count = 1;
        PROMISE(t[i].rank >= 0 && t[i].rank <= WEIR_MAX_RANK && t[i].dtype <= WEIR_OTHER);
        for (int a = 0; a < WEIR_MAX_RANK; a++)
            PROMISE(t[i].shape[a] >= 0 && weir_mul64(count, t[i].shape[a], &count));
        PROMISE(t[i].dtype == WEIR_OTHER || (size_t)(count * weir_dtype_bytes(t[i].dtype)) == t[i].bytes);
        PROMISE(t[i].data == data + t[i].offset && (size_t)t[i].offset + t[i].bytes <= size);
        PROMISE(i == 0 || t[i].offset == t[i - 1].offset + (int64_t)t[i - 1].bytes);
        sum += t[i].bytes;
    }
    PROMISE(n == 0 || (size_t)t[0].offset + sum == size);
}

static void parse(const uint8_t *data, size_t size)
{
    char path[] = "fuzz.safetensors";
    weir_filemap m = {.data = size ? data : NULL, .size = size, .path = path};
    weir_arena arena = {0};
    weir_tensor *t = NULL;
    int64_t n = 0;
    weir_err err = {0};
    weir_status s = weir_safetensors_parse(&m, &arena, &t, &n, &err);
    promise_error(s, &err);
    if (s == WEIR_OK)
        check(t, n, data, size);
    weir_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size || data[0] != '{') {
        parse(data, size);
        return 0;
    }
    size_t whole;
    uint8_t *file = parts_safetensors(data, size, &whole);
    parse(file, whole);
    free(file);
    return 0;
}
