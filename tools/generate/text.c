/* A sequence's text: what its new tokens add, where a stop string ends it, and what of it may be shown already. */
#include <stdlib.h>
#include <string.h>

#include "cli/printable.h"
#include "job.h"

/* What a token adds. Without a tokenizer ids are the text. */
static weir_str bytes_of(const weir_gen_job *j, const weir_gen_seq *s, int32_t id, char number[16])
{
    if (!j->session.tok)
        return (weir_str){number, (size_t)snprintf(number, 16, s->text_n ? " %d" : "%d", id)};
    if (weir_tokenizer_is_special(j->session.tok, id))
        return (weir_str){"", 0};
    return weir_tokenizer_bytes(j->session.tok, id);
}

/* Cuts the text before the first stop string that it holds. What stood before the last token holds none. */
static void cut(const weir_gen_job *j, weir_gen_seq *s, size_t before)
{
    size_t first = s->text_n;
    for (int i = 0; i < j->a->stop.n; i++) {
        const char *stop = j->a->stop.v[i];
        size_t n = strlen(stop), from = before >= n ? before - n + 1 : 0;
        const char *hit = s->text_n > from ? memmem(s->text + from, s->text_n - from, stop, n) : NULL;
        if (hit && (size_t)(hit - s->text) < first) {
            first = (size_t)(hit - s->text);
            s->stop = stop;
            s->end = WEIR_GEN_STOP;
        }
    }
    s->text_n = first;
}

bool weir_gen_text_add(const weir_gen_job *j, weir_gen_seq *s, int32_t id)
{
    char number[16];
    const weir_str b = bytes_of(j, s, id, number);
    const size_t before = s->text_n;
    if (b.n > s->text_room - s->text_n) {
        size_t room = 2 * s->text_room + b.n + 256;
        char *p = realloc(s->text, room);
        if (!p)
            return false;
        s->text = p;
        s->text_room = room;
    }
    if (b.n)
        memcpy(s->text + s->text_n, b.p, b.n);
    s->text_n += b.n;
    cut(j, s, before);
    return true;
}

void weir_gen_printable(weir_text *t, const char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0;
        char hex[8];
        int len = weir_utf8_at(p + i, n - i, &cp);
        size_t part = len ? (size_t)len : 1;
        if (len && (cp == '\n' || cp == '\t' || !weir_unprintable(cp)))
            weir_text_add(t, p + i, part);
        else
            for (size_t k = 0; k < part; k++)
                weir_text_add(t, hex, (size_t)snprintf(hex, sizeof hex, "\\x%02x", (unsigned char)p[i + k]));
        i += part;
    }
}

/* Bytes at the end of the text that a stop string may begin with. */
static size_t held_for_stop(const weir_gen_seq *s, const char *stop)
{
    size_t n = strlen(stop) - 1;
    for (n = n < s->text_n ? n : s->text_n; n > 0; n--)
        if (memcmp(s->text + s->text_n - n, stop, n) == 0)
            return n;
    return 0;
}

/* Bytes at the end that begin a character of UTF-8 and do not end it. */
static size_t held_for_character(const char *p, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = (unsigned char)p[n - back];
        if (c >= 0xc0) {
            size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
            return whole > back ? back : 0;
        }
        if (c < 0x80)
            return 0;
    }
    return 0;
}

size_t weir_gen_text_safe(const weir_gen_job *j, const weir_gen_seq *s)
{
    size_t held = 0;
    if (s->end != WEIR_GEN_RUNNING)
        return s->text_n;
    for (int i = 0; i < j->a->stop.n; i++) {
        size_t n = held_for_stop(s, j->a->stop.v[i]);
        held = n > held ? n : held;
    }
    size_t safe = s->text_n - held;
    return safe - held_for_character(s->text, safe);
}
