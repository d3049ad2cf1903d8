/* record/seal.c: see seal.h. */
#include "seal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* "\nweir-neurons             crc-32 89abcdef\n" */
#define MARK " crc-32 "
enum { NAME = 1, MARKED = NAME + WEIR_SEAL_NAMES - 1, SUM = MARKED + sizeof MARK - 1, SUM_DIGITS = 8, SEAL = SUM + 9 };
enum { PIECE = 1 << 16 };

static void make(char out[SEAL + 1], const char *format, uint32_t sum)
{
    snprintf(out, SEAL + 1, "\n%-*.*s" MARK "%08" PRIx32 "\n", MARKED - NAME, MARKED - NAME, format, sum);
}

/* Of the first bytes, which are read. */
static bool sum_of(FILE *f, int64_t bytes, uint32_t *sum)
{
    uint8_t piece[PIECE];
    uLong crc = crc32(0, NULL, 0);
    rewind(f);
    for (size_t n; bytes > 0; bytes -= (int64_t)n) {
        n = bytes < PIECE ? (size_t)bytes : PIECE;
        if (fread(piece, 1, n, f) != n)
            return false;
        crc = crc32(crc, piece, (uInt)n);
    }
    *sum = (uint32_t)crc;
    return true;
}

static bool add_seal(FILE *f, const char *format)
{
    struct stat st;
    char seal[SEAL + 1];
    uint32_t sum;
    if (fstat(fileno(f), &st) || !sum_of(f, st.st_size, &sum) || fseek(f, 0, SEEK_END))
        return false;
    make(seal, format, sum);
    return fwrite(seal, 1, SEAL, f) == SEAL;
}

weir_status weir_seal_put(const char *path, const char *format, weir_err *err)
{
    errno = 0;
    FILE *f = fopen(path, "r+be");
    const bool sealed = f && add_seal(f, format);
    const int number = errno ? errno : EIO; /* a file that ends too early sets none */
    const bool closed = f && !fclose(f);
    if (sealed && closed)
        return WEIR_OK;
    return weir_fail(err, WEIR_E_IO, "cannot write %s: %s", path, strerror(sealed ? errno : number));
}

/* The bytes that a seal stands behind, and the seal; NULL: there is none, or no such file. To be closed. */
static FILE *open_sealed(const char *path, int64_t *bytes, char seal[SEAL + 1])
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe must not hold us up */
    FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
    if (!f && fd >= 0)
        close(fd);
    if (!f)
        return NULL;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size >= SEAL && !fseeko(f, st.st_size - SEAL, SEEK_SET) &&
        fread(seal, 1, SEAL, f) == SEAL && seal[0] == '\n' && !memcmp(seal + MARKED, MARK, sizeof MARK - 1)) {
        *bytes = st.st_size - SEAL;
        return f;
    }
    fclose(f);
    return NULL;
}

weir_status weir_seal_check(const char *path, weir_err *err)
{
    char seal[SEAL + 1], right[SEAL + 1];
    int64_t bytes;
    uint32_t sum = 0;
    FILE *f = open_sealed(path, &bytes, seal);
    if (!f)
        return WEIR_OK;
    const bool read = sum_of(f, bytes, &sum);
    fclose(f);
    if (!read)
        return weir_fail(err, WEIR_E_IO, "cannot be read to its end");
    make(right, "", sum);
    if (!memcmp(right + SUM, seal + SUM, SEAL - SUM))
        return WEIR_OK;
    return weir_fail(err, WEIR_E_FORMAT,
                     "is damaged: the CRC-32 of its bytes is %.*s, not what its last line says: copy it again, or make "
                     "it again",
                     SUM_DIGITS, right + SUM);
}

bool weir_seal_format(const char *path, char out[WEIR_SEAL_NAMES])
{
    char seal[SEAL + 1];
    int64_t bytes;
    FILE *f = open_sealed(path, &bytes, seal);
    if (!f)
        return false;
    fclose(f);
    memcpy(out, seal + NAME, WEIR_SEAL_NAMES - 1);
    out[WEIR_SEAL_NAMES - 1] = 0;
    out[strcspn(out, " ")] = 0;
    return true;
}
