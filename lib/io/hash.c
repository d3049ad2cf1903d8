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
    FILE *f = fopen(path, "rbe");
    if (!f)
        return weir_fail(err, WEIR_E_IO, "cannot open %s: %s", path, strerror(errno));
    weir_sha256_init(&s);
    while ((n = fread(block, 1, sizeof block, f)) > 0)
        weir_sha256_add(&s, block, n);
    weir_status st = ferror(f) ? weir_fail(err, WEIR_E_IO, "cannot read %s: %s", path, strerror(errno)) : WEIR_OK;
    fclose(f);
    weir_sha256_hex(&s, hex);
    return st;
}
