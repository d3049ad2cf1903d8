/* GGUF files: every value of what is accepted can be read, and every tensor lies in the file. */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/gguf.h"

#include "driver.h"

static void read_value(const weir_gguf *g, const weir_gguf_kv *kv)
{
    char *key = strndup(kv->key.p, kv->key.n);
    int64_t i;
    double d;
    bool b, found;
    weir_str s;
    size_t pos = 0;
    if (!key)
        abort();
    bool whole = strlen(key) == kv->key.n; /* a key with NUL is cut, and may then be another one */
    PROMISE(!whole || weir_gguf_find(g, key) == kv);
    int right =
        (weir_gguf_int(g, key, &i, &found, NULL) == WEIR_OK) + (weir_gguf_double(g, key, &d, &found, NULL) == WEIR_OK) +
        (weir_gguf_bool(g, key, &b, &found, NULL) == WEIR_OK) + (weir_gguf_str(g, key, &s, &found, NULL) == WEIR_OK);
    PROMISE(!whole || (kv->type == WEIR_GGUF_ARRAY ? right == 0 : right >= 1));
    for (uint64_t k = 0; kv->type == WEIR_GGUF_ARRAY && k < kv->n; k++) {
        if (kv->elem == WEIR_GGUF_STRING)
            PROMISE(weir_gguf_next_str(g, kv, &pos, &s, NULL) == WEIR_OK);
        else if (kv->elem == WEIR_GGUF_F32 || kv->elem == WEIR_GGUF_F64)
            (void)weir_gguf_elem_double(kv, k);
        else
            (void)weir_gguf_elem_int(kv, k);
    }
    free(key);
}

static void read_tensor(const weir_gguf *g, const weir_tensor *t)
{
    int64_t count = 1;
    PROMISE(t->rank >= 0 && t->rank <= WEIR_MAX_RANK && t->dtype < WEIR_OTHER && t->name[0]);
    for (int a = 0; a < WEIR_MAX_RANK; a++)
        PROMISE(t->shape[a] >= 0 && weir_mul64(count, t->shape[a], &count));
    PROMISE((size_t)(count / weir_dtype_block(t->dtype) * weir_dtype_bytes(t->dtype)) == t->bytes);
    PROMISE((const uint8_t *)t->data == g->map.data + t->offset && (size_t)t->offset + t->bytes <= g->map.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    weir_gguf g;
    weir_err err = {0};
    weir_status s = weir_gguf_open(&g, path, &err);
    promise_error(s, &err);
    PROMISE(s != WEIR_OK || g.meta_bytes <= size);
    for (int64_t i = 0; i < g.n_kv; i++)
        read_value(&g, &g.kv[i]);
    for (int64_t i = 0; i < g.n_tensors; i++)
        read_tensor(&g, &g.tensor[i]);
    weir_gguf_close(&g);
    close(fd);
    return 0;
}
