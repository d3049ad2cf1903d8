/* Machines: a table from data sheets, and files of the user's own. */
#include <weir/roofline.h>

#include <math.h>
#include <string.h>
#include <strings.h>

#include <weir/json.h>

#include "../io/filemap.h"

/* Dense products of BF16 or FP16 with fp32 sums, no sparsity, boost clock. Sources: the makers' data sheets and white
 * papers, named behind each row; sheets that print figures "with sparsity" have them halved here. */
static const weir_hardware table[] = {
    {"h100", "NVIDIA H100 SXM5 80 GB", 989.4e12, 3.35e12, 80e9},     /* H100 data sheet: 1,979 sparse; 3.35 TB/s */
    {"h100-pcie", "NVIDIA H100 PCIe 80 GB", 756e12, 2.0e12, 80e9},   /* H100 data sheet: 1,513 sparse; 2 TB/s */
    {"h200", "NVIDIA H200 SXM 141 GB", 989.4e12, 4.8e12, 141e9},     /* H200 data sheet */
    {"b200", "NVIDIA B200 SXM 180 GB", 2250e12, 7.7e12, 180e9},      /* DGX B200 data sheet, an eighth of it */
    {"a100", "NVIDIA A100 SXM4 80 GB", 312e12, 2.039e12, 80e9},      /* A100 data sheet: 312; 2,039 GB/s */
    {"a100-40gb", "NVIDIA A100 SXM4 40 GB", 312e12, 1.555e12, 40e9}, /* A100 data sheet: 1,555 GB/s */
    {"v100", "NVIDIA V100 SXM2 32 GB", 125e12, 0.9e12, 32e9},        /* V100 data sheet; FP16 only */
    {"l40s", "NVIDIA L40S 48 GB", 362.05e12, 0.864e12, 48e9}, /* L40S data sheet: 733 sparse (rounded), 864 GB/s */
    {"l4", "NVIDIA L4 24 GB", 121e12, 0.3e12, 24e9},          /* L4 data sheet: 242 sparse; 300 GB/s */
    {"rtx4090", "NVIDIA GeForce RTX 4090 24 GB", 165.2e12, 1.008e12, 24e9}, /* Ada white paper, fp32 sums */
    {"rtx3090", "NVIDIA GeForce RTX 3090 24 GB", 71e12, 0.936e12, 24e9},    /* Ampere GA102 white paper, fp32 sums */
    {"mi300x", "AMD Instinct MI300X 192 GB", 1307.4e12, 5.3e12, 192e9},     /* MI300X data sheet */
    {"mi250x", "AMD Instinct MI250X 128 GB", 383e12, 3.2768e12, 128e9},     /* MI250X data sheet, both dies */
    {"tpu-v4", "Google TPU v4 32 GB", 275e12, 1.2288e12, 32e9},             /* Cloud TPU system pages; BF16 */
    {"tpu-v5e", "Google TPU v5e 16 GB", 197e12, 0.819e12, 16e9},            /* Cloud TPU system pages */
    {"tpu-v5p", "Google TPU v5p 95 GB", 459e12, 2.765e12, 95e9},            /* Cloud TPU system pages */
};

int weir_hardware_count(void)
{
    return (int)(sizeof table / sizeof *table);
}

const weir_hardware *weir_hardware_at(int i)
{
    return i >= 0 && i < weir_hardware_count() ? &table[i] : NULL;
}

const weir_hardware *weir_hardware_named(const char *name)
{
    for (int i = 0; i < weir_hardware_count(); i++)
        if (!strcasecmp(table[i].name, name))
            return &table[i];
    return NULL;
}

static void read_text(char *to, size_t n, weir_str s)
{
    snprintf(to, n, "%.*s", s.n < n ? (int)s.n : (int)n - 1, s.p ? s.p : "");
    weir_make_printable(to);
}

static double read_rate(weir_json *j, weir_str key)
{
    char name[16];
    snprintf(name, sizeof name, "%.*s", (int)key.n, key.p);
    const double x = weir_json_double(j);
    if (!(x > 0) || !isfinite(x))
        weir_json_fail(j, "%s must be above 0", name);
    return x;
}

static void read_fields(weir_json *j, weir_hardware *h)
{
    weir_str key;
    weir_json_object(j);
    while (weir_json_key(j, &key)) {
        if (weir_str_eq(key, "name"))
            read_text(h->name, sizeof h->name, weir_json_string(j));
        else if (weir_str_eq(key, "about"))
            read_text(h->about, sizeof h->about, weir_json_string(j));
        else if (weir_str_eq(key, "flops"))
            h->flops = read_rate(j, key);
        else if (weir_str_eq(key, "bandwidth"))
            h->bandwidth = read_rate(j, key);
        else if (weir_str_eq(key, "memory"))
            h->memory = read_rate(j, key);
        else
            weir_json_fail(j, "\"%.*s\" is none of name, about, flops, bandwidth, memory", key.n > 40 ? 40 : (int)key.n,
                           key.p);
    }
    if (!(h->flops > 0 && h->bandwidth > 0))
        weir_json_fail(j, "\"flops\" and \"bandwidth\" are needed, both a second");
    weir_json_end(j);
}

weir_status weir_hardware_read(weir_hardware *out, const char *path, weir_err *err)
{
    weir_filemap map = {0};
    weir_json j;
    *out = (weir_hardware){0};
    WEIR_TRY(weir_filemap_open(&map, path, err));
    weir_json_init(&j, map.data, map.size, path, err);
    read_fields(&j, out);
    weir_status st = weir_json_done(&j);
    weir_filemap_close(&map);
    if (st == WEIR_OK && !out->name[0]) {
        const char *slash = strrchr(path, '/');
        read_text(out->name, sizeof out->name, (weir_str){slash ? slash + 1 : path, strlen(slash ? slash + 1 : path)});
    }
    return st;
}
