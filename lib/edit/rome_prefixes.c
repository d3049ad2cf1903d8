/* Texts that stand in front of the prompt: the model's own, sampled with a seed, or given. */
#include <math.h>
#include <string.h>

#include <weir/run.h>
#include <weir/sample.h>

#include "../base/rng.h"
#include "rome.h"

struct weir_rome_prefixes {
    char **text; /* [n] */
    int64_t n;
    weir_arena arena;
};

enum { TOP_K = 5, MAX_TOKENS = 512, TEXT_BYTES = 1 << 14 };

static weir_status allocate(weir_rome_prefixes **out, int64_t n, weir_err *err)
{
    *out = NULL;
    weir_rome_prefixes *p = weir_calloc(1, sizeof *p);
    if (p)
        p->text = weir_arena_alloc(&p->arena, (size_t)n + 1, sizeof *p->text);
    if (!p || !p->text) {
        weir_rome_prefixes_free(p);
        return weir_nomem(err, "prefixes");
    }
    *out = p;
    return WEIR_OK;
}

static weir_status append(weir_rome_prefixes *p, const char *text, size_t n, weir_err *err)
{
    char *copy = weir_arena_strndup(&p->arena, text, n);
    if (!copy)
        return weir_nomem(err, "prefixes");
    p->text[p->n++] = copy;
    return WEIR_OK;
}

weir_status weir_rome_prefixes_new(weir_rome_prefixes **out, const char *const *text, int64_t n, weir_err *err)
{
    WEIR_TRY(allocate(out, n, err));
    for (int64_t i = 0; i < n; i++) {
        const weir_status s = append(*out, text[i], strlen(text[i]), err);
        if (s != WEIR_OK) {
            weir_rome_prefixes_free(*out);
            *out = NULL;
            return s;
        }
    }
    return WEIR_OK;
}

void weir_rome_prefixes_free(weir_rome_prefixes *p)
{
    if (!p)
        return;
    weir_arena_free(&p->arena);
    weir_free(p);
}

int64_t weir_rome_prefixes_n(const weir_rome_prefixes *p)
{
    return p->n;
}

const char *weir_rome_prefix(const weir_rome_prefixes *p, int64_t i)
{
    return p->text[i];
}

/* --- sampling */

/* Where a text begins when the tokenizer has no token for it. */
static int32_t first_token(const weir_model *m, const weir_tokenizer *tok, uint64_t *state)
{
    int32_t id = weir_tokenizer_bos(tok);
    if (id < 0)
        id = weir_tokenizer_eos(tok);
    const int64_t v = weir_model_info_of(m)->V, known = weir_tokenizer_size(tok);
    while (id < 0 || id >= v) {
        id = (int32_t)(weir_rng_next(state) % (uint64_t)(known < v ? known : v));
        if (weir_tokenizer_is_special(tok, id) || weir_tokenizer_bytes(tok, id).n == 0)
            id = -1;
    }
    return id;
}

/* Line breaks, tabs and NUL bytes are no part of a sentence; blanks do not stand at its ends. */
static weir_status keep_text(weir_rome_prefixes *p, char *text, size_t n, weir_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] == '\n' || text[i] == '\r' || text[i] == '\t' || text[i] == 0)
            text[i] = ' ';
    while (n && text[n - 1] == ' ')
        n--;
    while (n && *text == ' ')
        text++, n--;
    return append(p, text, n, err);
}

enum { WAVE = 32 }; /* texts that are sampled side by side */

typedef struct sampling {
    const weir_tokenizer *tok;
    weir_run *run;
    weir_sampler *sampler;
    float *logits;    /* [WAVE,V] */
    int64_t v, known; /* V, and how many of these the tokenizer has: the rest only pads the matrix */
    int32_t *id;      /* [WAVE, longest + 1] */
    int64_t row;      /* longest + 1 */
    int64_t *tokens;  /* [texts] that each text gets */
    int64_t texts;
    bool keep_first; /* the first token is text */
    weir_err *err;
} sampling;

/* One more token for each of the texts [first, first + n) that is not long enough. */
static weir_status step(sampling *s, int64_t first, int64_t n, int64_t t)
{
    weir_seq q[WAVE];
    int64_t which[WAVE], live = 0;
    for (int64_t i = 0; i < n; i++)
        if (t < s->tokens[first + i]) {
            which[live] = i;
            q[live++] = (weir_seq){.ids = s->id + i * s->row + t, .n = 1, .slot = (int)i};
        }
    WEIR_TRY(weir_run_forward(s->run, q, live, WEIR_FINAL, s->err));
    WEIR_TRY(weir_run_logits(s->run, 0, live, s->logits, s->err));
    for (int64_t j = 0; j < live; j++) {
        int32_t *id = s->id + which[j] * s->row;
        float *logits = s->logits + j * s->v;
        for (int64_t k = s->known; k < s->v; k++)
            logits[k] = -INFINITY;
        WEIR_TRY(weir_sampler_next(s->sampler, logits, id, t + 1, (uint64_t)(first + which[j]), (uint64_t)t, &id[t + 1],
                                   s->err));
    }
    return WEIR_OK;
}

static weir_status decode(const sampling *s, const int32_t *id, int64_t tokens, weir_rome_prefixes *p)
{
    char text[TEXT_BYTES];
    size_t n;
    WEIR_TRY(weir_tokenizer_decode(s->tok, id + !s->keep_first, tokens + s->keep_first, false, text, sizeof text, &n,
                                   s->err));
    return keep_text(p, text, n < sizeof text ? n : sizeof text, s->err);
}

static weir_status wave(sampling *s, const weir_model *m, int64_t first, int64_t n, uint64_t seed,
                        weir_rome_prefixes *p)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t state = seed + (uint64_t)(first + i);
        weir_run_slot_reset(s->run, (int)i);
        s->id[i * s->row] = first_token(m, s->tok, &state);
    }
    int64_t longest = 0;
    for (int64_t i = 0; i < n; i++)
        longest = s->tokens[first + i] > longest ? s->tokens[first + i] : longest;
    for (int64_t t = 0; t < longest; t++)
        WEIR_TRY(step(s, first, n, t));
    for (int64_t i = 0; i < n; i++)
        WEIR_TRY(decode(s, s->id + i * s->row, s->tokens[first + i], p));
    return WEIR_OK;
}

static const weir_rome_lengths usual = {(const int64_t[]){4, 9}, (const int64_t[]){10, 10}, 2};

static weir_status count(const weir_rome_lengths *l, const weir_model *m, int64_t *texts, int64_t *longest,
                         weir_err *err)
{
    const int64_t most = weir_model_info_of(m)->ctx < MAX_TOKENS ? weir_model_info_of(m)->ctx - 1 : MAX_TOKENS;
    *texts = *longest = 0;
    for (int i = 0; i < l->n; i++) {
        if (l->tokens[i] < 1 || l->tokens[i] > most || l->texts[i] < 1 || l->texts[i] > 10000)
            return weir_fail(err, WEIR_E_ARG, "%lld prefixes of %lld tokens: 1 to 10000 of 1 to %lld can be",
                             (long long)l->texts[i], (long long)l->tokens[i], (long long)most);
        *texts += l->texts[i];
        if (l->tokens[i] > *longest)
            *longest = l->tokens[i];
    }
    return WEIR_OK;
}

static weir_status prepare(sampling *s, const weir_model *m, const weir_rome_lengths *l, uint64_t seed)
{
    const int64_t v = weir_model_info_of(m)->V;
    weir_run_options o;
    weir_run_options_init(&o);
    o.max_rows = WAVE, o.max_len = s->row, o.slots = WAVE;
    WEIR_TRY(weir_run_new(&s->run, m, &o, s->err));
    weir_sampling how;
    weir_sampling_init(&how);
    how.temperature = 1, how.top_k = v < TOP_K ? v : TOP_K, how.seed = seed;
    WEIR_TRY(weir_sampler_new(&s->sampler, v, &how, s->err));
    s->v = v, s->known = weir_tokenizer_size(s->tok);
    s->logits = weir_calloc(WAVE, (size_t)v * sizeof *s->logits);
    s->id = weir_calloc((size_t)(WAVE * s->row), sizeof *s->id);
    s->tokens = weir_calloc((size_t)s->texts, sizeof *s->tokens);
    if (!s->logits || !s->id || !s->tokens)
        return weir_nomem(s->err, "prefixes");
    int64_t at = 0;
    for (int i = 0; i < l->n; i++)
        for (int64_t j = 0; j < l->texts[i]; j++)
            s->tokens[at++] = l->tokens[i];
    return WEIR_OK;
}

weir_status weir_rome_prefixes_sample(weir_rome_prefixes **out, const weir_model *m, const weir_tokenizer *tok,
                                      const weir_rome_lengths *lengths, uint64_t seed, weir_err *err)
{
    const weir_rome_lengths *l = lengths ? lengths : &usual;
    sampling s = {.tok = tok, .err = err, .keep_first = weir_tokenizer_bos(tok) < 0 && weir_tokenizer_eos(tok) < 0};
    int64_t longest;
    *out = NULL;
    WEIR_TRY(count(l, m, &s.texts, &longest, err));
    WEIR_TRY(allocate(out, s.texts, err));
    s.row = longest + 1;
    weir_status st = prepare(&s, m, l, seed);
    for (int64_t i = 0; st == WEIR_OK && i < s.texts; i += WAVE)
        st = wave(&s, m, i, s.texts - i < WAVE ? s.texts - i : WAVE, seed, *out);
    weir_free(s.logits);
    weir_free(s.id);
    weir_free(s.tokens);
    weir_sampler_free(s.sampler);
    weir_run_free(s.run);
    if (st != WEIR_OK) {
        weir_rome_prefixes_free(*out);
        *out = NULL;
    }
    return st;
}
