/* The fingerprint of a checkpoint. Hashed, in this order:
 *   the bytes of config.json, or of the GGUF file's header, metadata and tensor table;
 *   for each tensor of the checkpoint, by name (bytes compared): name, 0, dtype, 0, then rank and axes as 64-bit
 * little-endian numbers, then its first and last 4 KiB (which may overlap), or, for the full fingerprint, all its
 * bytes. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/sha256.h"
#include "impl.h"

#define EDGE ((size_t)4096)

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const weir_tensor *const *)a)->name, (*(const weir_tensor *const *)b)->name);
}

static void add_number(weir_sha256 *h, int64_t v)
{
    uint8_t b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)((uint64_t)v >> 8 * i);
    weir_sha256_add(h, b, sizeof b);
}

/* Hashes n bytes of a map without the kernel's reading ahead, which may be megabytes for each of hundreds of tensors.
 */
static void add_edge(weir_sha256 *h, const char *p, size_t n)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)p / page * page;
    const size_t span = (size_t)((uintptr_t)p + n - from);
    if (n)
        madvise((void *)from, span, MADV_RANDOM);
    weir_sha256_add(h, p, n);
    if (n)
        madvise((void *)from, span, MADV_NORMAL);
}

static void add_tensor(weir_sha256 *h, const weir_tensor *t, bool full)
{
    const char *dtype = weir_dtype_name(t->dtype);
    weir_sha256_add(h, t->name, strlen(t->name) + 1);
    weir_sha256_add(h, dtype, strlen(dtype) + 1);
    add_number(h, t->rank);
    for (int i = 0; i < t->rank; i++)
        add_number(h, t->shape[i]);
    if (full) {
        weir_sha256_add(h, t->data, t->bytes);
        return;
    }
    size_t n = t->bytes < EDGE ? t->bytes : EDGE;
    add_edge(h, t->data, n);
    add_edge(h, (const char *)t->data + (t->bytes - n), n);
}

weir_status weir_model_fingerprint(const weir_model *m, bool full, char out[65], weir_err *err)
{
    const weir_tensor **sorted = weir_calloc((size_t)m->ck.n_tensors, sizeof *sorted);
    if (!sorted)
        return weir_nomem(err, "the fingerprint");
    for (int64_t i = 0; i < m->ck.n_tensors; i++)
        sorted[i] = &m->ck.tensor[i];
    qsort(sorted, (size_t)m->ck.n_tensors, sizeof *sorted, by_name);
    weir_sha256 h;
    weir_sha256_init(&h);
    if (m->ck.is_gguf)
        weir_sha256_add(&h, m->ck.gguf.map.data, m->ck.gguf.meta_bytes);
    else
        weir_sha256_add(&h, m->ck.config.data, m->ck.config.size);
    for (int64_t i = 0; i < m->ck.n_tensors; i++)
        add_tensor(&h, sorted[i], full);
    weir_sha256_hex(&h, out);
    weir_free(sorted);
    return WEIR_OK;
}
