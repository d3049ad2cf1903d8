/* Which characters a line for people must not hold. */
#include <stdbool.h>
#include <string.h>

#include <weir/base.h>

#include "utf8.h"

typedef struct range {
    uint32_t first, last;
} range;

bool weir_unprintable(uint32_t cp)
{
    /* C0, DEL and C1; the soft hyphen; marks that turn text around; line and paragraph separators; what has no shape. */
    static const range ranges[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},   {0x180e, 0x180e}, {0x200b, 0x200b},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0001, 0xe007f},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges && ranges[i].first <= cp; i++)
        if (cp <= ranges[i].last)
            return true;
    return false;
}

void weir_make_printable(char *text)
{
    for (size_t n = strlen(text); n > 0;) {
        const int len = weir_utf8_len(text, n), step = len ? len : 1;
        if (len == 0 || weir_unprintable(weir_utf8_cp(text, len)))
            memset(text, '?', (size_t)step);
        text += step;
        n -= (size_t)step;
    }
}
