/* Hashes of bytes and files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/base.h>

#include "../base/sha256.h"

void weir_sha256_bytes(const void *p, size_t n, char hex[65])
{
    weir_sha256 s;
    weir_sha256_init(&s);
    weir_sha256_add(&s, p, n);
    weir_sha256_hex(&s, hex);
}

weir_status weir_sha256_file(const char *path, char hex[65], weir_err *err)
{
    char block[1 << 15];
    size_t n;
    weir_sha256 s;
    weir_status st = WEIR_OK;
    FILE *f = fopen(path, "rbe");
    weir_sha256_init(&s);
    while (f && (n = fread(block, 1, sizeof block, f)) > 0)
        weir_sha256_add(&s, block, n);
    if (!f || ferror(f)) {
        st = weir_fail(err, WEIR_E_IO, "cannot %s: %s", f ? "read" : "open", strerror(errno));
        weir_err_where(err, path, NULL, -1);
    }
    if (f)
        fclose(f);
    weir_sha256_hex(&s, hex);
    return st;
}
