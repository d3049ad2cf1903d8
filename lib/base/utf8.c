#include "utf8.h"

static int is_tail(uint8_t b)
{
    return (b & 0xc0) == 0x80;
}

int weir_utf8_len(const char *text, size_t n)
{
    const uint8_t *p = (const uint8_t *)text;
    if (!n)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    if (p[0] < 0xe0)
        return n >= 2 && is_tail(p[1]) ? 2 : 0;
    /* The second byte's range keeps out overlong forms, surrogates and what lies beyond U+10FFFF. */
    uint8_t low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    int len = p[0] < 0xf0 ? 3 : 4;
    if (n < (size_t)len || p[1] < low || p[1] > high || !is_tail(p[2]))
        return 0;
    return len == 3 || is_tail(p[3]) ? len : 0;
}

uint32_t weir_utf8_cp(const char *text, int len)
{
    const uint8_t *p = (const uint8_t *)text;
    uint32_t cp = len == 1 ? p[0] : p[0] & (0x7fu >> len);
    for (int i = 1; i < len; i++)
        cp = cp << 6 | (p[i] & 0x3f);
    return cp;
}

int weir_utf8_put(char out[4], uint32_t cp)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    int len = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (int i = len - 1; i > 0; i--, cp >>= 6)
        out[i] = (char)(0x80 | (cp & 0x3f));
    out[0] = (char)(0xf00 >> len | cp); /* 110, 1110 or 11110, then what is left of cp */
    return len;
}
