#include "draw.h"

uint64_t weir_draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int32_t weir_draw_token(uint64_t *state, const weir_tokenizer *tok, int64_t vocab)
{
    const int64_t size = tok && weir_tokenizer_size(tok) < vocab ? weir_tokenizer_size(tok) : vocab;
    enum { TRIES = 1000 };
    int32_t id = 0;
    for (int i = 0; i < TRIES; i++) {
        id = (int32_t)(weir_draw(state) % (uint64_t)size);
        if (!tok || (!weir_tokenizer_is_special(tok, id) && weir_tokenizer_bytes(tok, id).n > 0))
            break;
    }
    return id;
}
