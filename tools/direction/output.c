/* The direction as a safetensors file: 8 bytes with the length of the header, the header (JSON), the numbers. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/say.h"
#include "direction.h"

/* How the header begins: by this an earlier direction is recognised. */
#define BEGIN "{\"__metadata__\":{\"made_by\":\"weir direction\""

static bool is_earlier(const char *path)
{
    char start[8 + sizeof BEGIN - 1];
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    const size_t n = fread(start, 1, sizeof start, f);
    fclose(f);
    return n == sizeof start && memcmp(start + 8, BEGIN, sizeof BEGIN - 1) == 0;
}

static weir_output_file file_of(const weir_direction *d)
{
    return (weir_output_file){.path = d->a->path, .force = d->a->force || is_earlier(d->a->path)};
}

int weir_direction_may_save(const weir_direction *d)
{
    if (!d->a->path)
        return WEIR_EXIT_OK;
    if (strcmp(d->a->path, "-") == 0)
        return weir_cli_usage(d->cli, "-o -: the direction goes to a file, the summary to standard output");
    const weir_output_file f = file_of(d);
    return weir_output_free(d->cli, &f);
}

static void put_header(const weir_direction *d, FILE *out)
{
    const int64_t bytes = d->k * d->n * (int64_t)sizeof(float);
    weir_jsonw w;
    weir_jsonw_init(&w, out);
    weir_jsonw_object(&w);
    weir_jsonw_key(&w, "__metadata__");
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "made_by", "weir direction");
    weir_jsonw_key_cstr(&w, "weir_version", weir_version());
    weir_jsonw_key_cstr(&w, "command_line", d->command_line);
    weir_direction_facts(d, &w, true);
    weir_jsonw_end(&w);
    weir_jsonw_key(&w, "direction");
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "dtype", "F32");
    weir_jsonw_key(&w, "shape");
    weir_jsonw_array(&w);
    if (d->a->method == WEIR_DIRECTION_PCA)
        weir_jsonw_int(&w, d->k);
    weir_jsonw_int(&w, d->n);
    weir_jsonw_end(&w);
    weir_jsonw_key(&w, "data_offsets");
    weir_jsonw_array(&w);
    weir_jsonw_int(&w, 0);
    weir_jsonw_int(&w, bytes);
    weir_jsonw_end(&w);
    weir_jsonw_end(&w);
    weir_jsonw_end(&w);
}

/* Little-endian, as every machine is that weir runs on. */
static int put_file(void *ctx, FILE *out)
{
    const weir_direction *d = ctx;
    char *header = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&header, &n);
    if (!f)
        return weir_cli_error(d->cli, "out of memory");
    put_header(d, f);
    for (long at = ftell(f); at % 8; at++) /* the numbers begin at a multiple of 8 */
        fputc(' ', f);
    if (fclose(f) != 0) {
        free(header);
        return weir_cli_error(d->cli, "out of memory");
    }
    const uint64_t length = n;
    fwrite(&length, sizeof length, 1, out);
    fwrite(header, 1, n, out);
    fwrite(d->vector, sizeof *d->vector, (size_t)(d->k * d->n), out);
    free(header);
    return WEIR_EXIT_OK;
}

int weir_direction_save(const weir_direction *d)
{
    if (!d->a->path)
        return WEIR_EXIT_OK;
    const weir_output_file f = file_of(d);
    return weir_output_put(d->cli, &f, put_file, (void *)(uintptr_t)d);
}
