/* Values from files: an input is a line, what stands behind FILE (::NAME @ROW *C), and the file: .npy or anything else
 * as it is, a safetensors header behind `{` (parts_safetensors), steps that edit a dump (dump_edit.h) behind `h`. */
#include <math.h>

#include <weir/record.h>
#include <weir/values.h>

#define FUZZ_COST 10
#include "dump_edit.h"

static void load(const char *text, const char *hook, int64_t most)
{
    weir_array a = {0};
    weir_err err = {0};
    promise_error(weir_values_load(&a, text, hook, most, &err), &err);
    if (!err.code) {
        PROMISE(a.rows > 0 && a.rows <= most && a.width > 0);
        for (int64_t i = 0; i < a.rows * a.width; i++)
            PROMISE(isfinite(a.data[i]));
        for (int64_t i = 1; a.units && i < a.width; i++)
            PROMISE(a.units[i] > a.units[i - 1]);
    }
    weir_array_free(&a);
}

static void find_places(const char *path, const char *hook)
{
    weir_places *p;
    weir_err err = {0};
    int index;
    int64_t row;
    const weir_dump_hook *info;
    const float *x;
    uint8_t last[sizeof *x]; /* reading it shows that it is there */
    promise_error(weir_places_open(&p, path, 1, &err), &err);
    if (!err.code)
        promise_error(weir_places_hook(p, hook, &index, &info, &err), &err);
    for (int64_t i = 0; !err.code && i < 8; i++)
        PROMISE(weir_places_column(p, index, i) < info->width);
    for (int64_t pos = 0; !err.code && pos < 3; pos++) {
        promise_error(weir_places_find(p, pos % 2, pos, &row, &err), &err);
        if (!err.code && row >= 0)
            promise_error(weir_places_row(p, index, row, &x, &err), &err);
        if (!err.code && row >= 0)
            memcpy(last, &x[info->width - 1], sizeof *x);
    }
    weir_places_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const hooks[] = {"hook_embed", "blocks.1.mlp.hook_post", NULL};
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    const size_t n = end ? (size_t)(end - data) : 0;
    const uint8_t *file = end ? end + 1 : data;
    size_t whole = size - (size_t)(file - data);
    const bool dump = whole && file[0] == 'h';
    char text[700];
    if (dump) {
        edit_input in = {file + 1, whole - 1};
        edit_dump(&in, "v");
    } else if (whole && file[0] == '{') {
        uint8_t *tensors = parts_safetensors(file, whole, &whole);
        parts_write("v", tensors, whole);
        free(tensors);
    } else {
        parts_write("v", file, whole);
    }
    snprintf(text, sizeof text, "%s%.*s", parts_path("v"), (int)(n < 200 ? n : 200), n ? (const char *)data : "");
    for (int i = 0; i < 3; i++) {
        weir_array a = {0};
        weir_err err = {0};
        load(text, hooks[i], 4);
        promise_error(hooks[i] ? weir_values_mean(&a, parts_path("v"), hooks[i], &err) : WEIR_OK, &err);
        weir_array_free(&a);
        if (dump && hooks[i])
            find_places(parts_path("v"), hooks[i]);
    }
    char *path = weir_values_path(text);
    PROMISE(!path || strlen(path) <= strlen(text));
    free(path);
    unlink(parts_path("v"));
    return 0;
}
