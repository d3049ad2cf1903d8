#include "base64.h"

#include <string.h>

static void put_group(weir_base64 *b, int bytes)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t x = b->held << (8 * (3 - bytes));
    char text[4] = {digit[x >> 18 & 63], digit[x >> 12 & 63], digit[x >> 6 & 63], digit[x & 63]};
    for (int i = bytes + 1; i < 4; i++)
        text[i] = '=';
    fwrite(text, 1, 4, b->out);
    b->held = 0;
    b->n_held = 0;
}

void weir_base64_put(weir_base64 *b, const void *p, size_t n)
{
    const uint8_t *byte = p;
    for (size_t i = 0; i < n; i++) {
        b->held = b->held << 8 | byte[i];
        if (++b->n_held == 3)
            put_group(b, 3);
    }
    b->bytes += n;
}

void weir_base64_end(weir_base64 *b)
{
    if (b->n_held)
        put_group(b, b->n_held);
}

static void put_little_endian(weir_base64 *b, uint64_t x, size_t n)
{
    uint8_t byte[8];
    for (size_t i = 0; i < n; i++)
        byte[i] = (uint8_t)(x >> (8 * i));
    weir_base64_put(b, byte, n);
}

void weir_base64_u32(weir_base64 *b, uint32_t x)
{
    put_little_endian(b, x, 4);
}

void weir_base64_f32(weir_base64 *b, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_little_endian(b, bits, 4);
}

void weir_base64_f64(weir_base64 *b, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_little_endian(b, bits, 8);
}

void weir_base64_count(weir_base64 *b, int64_t x)
{
    uint8_t byte[10];
    size_t n = 0;
    uint64_t rest = x < 0 ? 0 : (uint64_t)x;
    for (; rest >= 128; rest >>= 7)
        byte[n++] = (uint8_t)(rest | 128);
    byte[n++] = (uint8_t)rest;
    weir_base64_put(b, byte, n);
}
