#include "dump.h"

#include <stdlib.h>
#include <string.h>

#include "cli/from.h"
#include "cli/say.h"
#include "dump_impl.h"

enum { STEP = 1 << 14 };

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory");
}

/* --- the vocabulary */

/* How many tokens the dump's vocabulary has. A dump of bare ids, made without a tokenizer, has none. */
static weir_status count_vocab(weir_neurons_dump *d, weir_err *err)
{
    weir_err why = {0};
    weir_str bytes;
    const char *tokenizer = weir_dump_attr(d->r, "tokenizer_fingerprint");
    while (d->n_vocab < INT32_MAX && weir_dump_token_bytes(d->r, (int32_t)d->n_vocab, &bytes, &why) == WEIR_OK)
        d->n_vocab++;
    if (d->n_vocab == 0 && (why.code == WEIR_E_NOMEM || (tokenizer && *tokenizer))) {
        if (err)
            *err = why;
        return why.code;
    }
    return WEIR_OK;
}

/* BOS and special tokens: what the tokenizer says, else what the flags of the rows show. */
static weir_status find_kinds(weir_neurons_dump *d, weir_err *err)
{
    int32_t *id = malloc(sizeof *id * STEP);
    uint8_t *flags = malloc(STEP);
    d->kind = calloc((size_t)d->n_vocab + 1, 1);
    weir_status st = id && flags && d->kind ? WEIR_OK : no_memory(err);
    for (int64_t i = 0; st == WEIR_OK && d->o.tok && i < d->n_vocab; i++)
        d->kind[i] = (uint8_t)((i == weir_tokenizer_bos(d->o.tok) ? WEIR_KIND_BOS : 0) |
                               (weir_tokenizer_is_special(d->o.tok, (int32_t)i) ? WEIR_KIND_SPECIAL : 0));
    for (int64_t row = 0; row < d->rows && st == WEIR_OK; row += STEP) {
        int64_t n = d->rows - row < STEP ? d->rows - row : STEP;
        st = weir_dump_read_tokens(d->r, row, n, &(weir_token_columns){.id = id, .flags = flags}, err);
        for (int64_t i = 0; i < n && st == WEIR_OK; i++)
            if (id[i] >= 0 && id[i] < d->n_vocab)
                d->kind[id[i]] |= (uint8_t)((flags[i] & WEIR_TOKEN_BOS ? WEIR_KIND_BOS : 0) |
                                            (flags[i] & WEIR_TOKEN_SPECIAL ? WEIR_KIND_SPECIAL : 0));
    }
    free(id);
    free(flags);
    return st;
}

weir_status weir_neurons_dump_vocab(weir_neurons_dump *d, weir_neurons *s, weir_err *err)
{
    int64_t *offset = calloc((size_t)d->n_vocab + 1, sizeof *offset);
    uint8_t *special = calloc((size_t)d->n_vocab + 1, 1), *bytes = NULL;
    weir_status st = offset && special ? WEIR_OK : no_memory(err);
    weir_str token;
    for (int64_t i = 0; i < d->n_vocab && st == WEIR_OK; i++) {
        st = weir_dump_token_bytes(d->r, (int32_t)i, &token, err);
        if (st == WEIR_OK)
            offset[i + 1] = offset[i] + (int64_t)token.n;
        special[i] = (d->kind[i] & WEIR_KIND_SPECIAL) != 0;
    }
    if (st == WEIR_OK && !(bytes = malloc((size_t)offset[d->n_vocab] + 1)))
        st = no_memory(err);
    for (int64_t i = 0; i < d->n_vocab && st == WEIR_OK; i++) {
        st = weir_dump_token_bytes(d->r, (int32_t)i, &token, err);
        if (st == WEIR_OK && token.n)
            memcpy(bytes + offset[i], token.p, token.n);
    }
    if (st == WEIR_OK)
        st = weir_neurons_vocab_bytes(s, d->n_vocab, bytes, offset, special, err);
    free(offset);
    free(special);
    free(bytes);
    return st;
}

/* --- opening */

static weir_status read_part(weir_neurons_dump *d, weir_err *err)
{
    weir_from_part part;
    WEIR_TRY(weir_from_part_of(d->r, &part, err));
    d->shard = part.shard;
    d->shards = part.shards;
    d->first_doc = part.first_doc;
    return WEIR_OK;
}

static weir_status open_dump(weir_neurons_dump *d, weir_err *err)
{
    WEIR_TRY(weir_dump_open(&d->r, d->o.path, err));
    weir_dump_set_threads(d->r, d->o.threads);
    d->rows = weir_dump_rows(d->r);
    d->interventions = weir_from_changes(d->r);
    if (!d->interventions)
        return no_memory(err);
    WEIR_TRY(read_part(d, err));
    WEIR_TRY(weir_dump_choose(d, err));
    WEIR_TRY(count_vocab(d, err));
    return find_kinds(d, err);
}

int weir_neurons_dump_open(weir_neurons_dump **out, const weir_cli *cli, const weir_neurons_dump_options *o)
{
    weir_err err = {0};
    *out = NULL;
    weir_neurons_dump *d = calloc(1, sizeof *d);
    if (!d)
        return weir_cli_error(cli, "out of memory");
    *d = (weir_neurons_dump){.cli = cli, .o = *o};
    weir_status st = open_dump(d, &err);
    if (st != WEIR_OK) {
        const int code =
            st == WEIR_E_ARG ? weir_cli_bad_argument(cli, NULL, &err) : weir_cli_fail_at(cli, o->path, &err);
        weir_neurons_dump_close(d);
        return code;
    }
    weir_from_note_incomplete(cli, d->r, o->path);
    *out = d;
    return WEIR_EXIT_OK;
}

void weir_neurons_dump_close(weir_neurons_dump *d)
{
    if (!d)
        return;
    for (int i = 0; i < d->n; i++) {
        free(d->source[i].unit);
        free(d->source[i].column);
    }
    free(d->table);
    free(d->source);
    free(d->kind);
    free(d->interventions);
    weir_dump_close(d->r);
    free(d);
}

const weir_neurons_table *weir_neurons_dump_tables(const weir_neurons_dump *d, int *n)
{
    *n = d->n;
    return d->table;
}

int64_t weir_neurons_dump_vocabulary(const weir_neurons_dump *d)
{
    return d->n_vocab;
}

bool weir_neurons_is_dump(const char *path)
{
    return weir_from_is_hdf5(path) && !weir_neurons_is_file(path);
}

static const char *attr(weir_neurons_dump *d, const char *name)
{
    return weir_from_attr(d->r, name, "");
}

void weir_neurons_dump_about(weir_neurons_dump *d, weir_neurons_about *about)
{
    *about = (weir_neurons_about){.model = attr(d, "model"),
                                  .family = attr(d, "family"),
                                  .fingerprint = attr(d, "fingerprint"),
                                  .tokenizer = attr(d, "tokenizer_fingerprint"),
                                  .source = attr(d, "run_options"),
                                  .interventions = d->interventions,
                                  .shard = d->shard,
                                  .shards = d->shards,
                                  .rows_done = d->rows,
                                  .complete = weir_dump_is_complete(d->r)};
}
