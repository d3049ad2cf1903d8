/* kv/kv.h: what `weir kv-read` measures and shows. The map of this directory:
 *
 *   values.c   what values promote: before the text is run, and, once triggers are known, the ranks of what followed
 * them live.c     the run over text: triggers of keys, where each layer's prediction comes from text.c     for people
 *   lines.c    TSV
 *   json.c     JSON
 *   svg.c      the four-way split, drawn
 */
#ifndef WEIR_TOOLS_KV_H
#define WEIR_TOOLS_KV_H

#include "cli/provenance.h"
#include "cli/session.h"
#include "neurons/ask.h"

/* What a memory's triggers are found by. */
typedef enum weir_kv_key { WEIR_KV_COEFFICIENT, WEIR_KV_GATE, WEIR_KV_UP, WEIR_KV_KEYS } weir_kv_key;
#define WEIR_KV_KEY_WORDS "all|coefficient|gate|up"
#define WEIR_KV_SIGN_WORDS "+|-|both"
enum { WEIR_KV_PLUS, WEIR_KV_MINUS, WEIR_KV_BOTH };
#define WEIR_KV_NORM_WORDS "none|gain|recompute"
#define WEIR_KV_DEDUP_WORDS "none|window|doc|text"
enum { WEIR_KV_PER_LAYER, WEIR_KV_PER_KEY, WEIR_KV_PER_VALUE, WEIR_KV_PER_TRIGGER };
#define WEIR_KV_PER_WORDS "layer|key|value|trigger"
enum { WEIR_KV_AUTO, WEIR_KV_TEXT, WEIR_KV_TSV, WEIR_KV_SVG };
#define WEIR_KV_FORMAT_WORDS "auto|text|tsv|svg"

typedef struct weir_kv_args {
    weir_session_args session;
    weir_opt_list layers, neurons;
    int64_t k, tokens, limit, every, context, seed;
    int key, sign, norm, dedup, per, format;
    const char *mask, *out;
    bool force;
} weir_kv_args;

/* The triggers of all keys of one kind and sign in a layer. */
typedef struct weir_kv_triggers {
    int32_t *next, *rank; /* [F, k] the token behind each, and its rank in the value's distribution */
    weir_keyvalue_figures figures;
} weir_kv_triggers;

typedef struct weir_kv_layer {
    int layer;
    const weir_point *point[WEIR_KV_KEYS]; /* of keys; NULL: not asked for. [WEIR_KV_COEFFICIENT] is read in any case */
    const weir_point *residual, *attn_out; /* resid_mid and NULL; in parallel blocks resid_pre and attn_out */
    const weir_point *mlp, *out;
    int32_t *top_id[2];    /* [F, tokens] of values, and of their negatives */
    float *top_logprob[2]; /* [F, tokens] */
    weir_kv_triggers triggers[WEIR_KV_KEYS][2];
} weir_kv_layer;

/* A memory that is listed. */
typedef struct weir_kv_listed {
    int layer; /* index in weir_kv.layer */
    int64_t unit;
    double prob; /* of its value's likeliest token */
} weir_kv_listed;

typedef struct weir_kv {
    weir_cli *cli;
    const weir_kv_args *a;
    weir_session s;
    weir_asks asks;
    weir_kv_layer *layer; /* [n_layers] chosen */
    int n_layers;
    bool key[WEIR_KV_KEYS], sign[2]; /* what is asked for */
    int format;
    int64_t F, C, k, tokens, vocab;
    weir_lens_norm norm;
    weir_lens *lens;
    weir_keyvalue *split;
    weir_neurons *search;    /* table of key and layer: weir_kv_table */
    int table[WEIR_KV_KEYS]; /* the first of a key's tables, one for each layer */
    struct weir_kv_live *live;
    weir_provenance about;
    weir_provenance_room room;
    weir_kv_listed *listed; /* [n_listed] */
    int64_t n_listed;
    FILE *out;
    double start;
} weir_kv;

extern const char *const weir_kv_key_name[WEIR_KV_KEYS], *const weir_kv_sign_name[2], *const weir_kv_norm_name[];

/* values.c; each returns an exit code; an error has been said. */
/* Likeliest tokens of all values; into weir_kv.split too. */
int weir_kv_read_values(weir_kv *t);
/* Behind the run: tokens behind triggers, their ranks, the figures of each layer; which memories are listed. */
int weir_kv_read_triggers(weir_kv *t);
int weir_kv_choose_listed(weir_kv *t);

/* live.c: attaches to the session's run; runs the text. */
int weir_kv_attach(weir_kv *t);
int weir_kv_run(weir_kv *t);
void weir_kv_live_free(struct weir_kv_live *l);

/* --- what outputs ask */

/* Triggers of a key, best first: hit [k]. */
int64_t weir_kv_hits(const weir_kv *t, int layer, weir_kv_key key, int sign, int64_t unit, weir_neuron_hit *hit);
/* Triggers that are followed by the value's likeliest token, of those that are followed by any. */
void weir_kv_matches(const weir_kv *t, int layer, weir_kv_key key, int sign, int64_t unit, int64_t *agree,
                     int64_t *places);
static inline weir_str weir_kv_bytes(const weir_kv *t, int32_t id)
{
    return t->s.tok && id >= 0 ? weir_tokenizer_bytes(t->s.tok, id) : (weir_str){NULL, 0};
}

/* Outputs, to t->out. False: out of memory. */
bool weir_kv_put_text(const weir_kv *t);
bool weir_kv_put_tsv(const weir_kv *t);
bool weir_kv_put_json(const weir_kv *t);
void weir_kv_put_svg(const weir_kv *t);

#endif
