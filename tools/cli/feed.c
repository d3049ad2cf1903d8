#include "feed.h"

#include <stdlib.h>
#include <string.h>

#include "positions.h"

/* The document that is being cut. Row r of it is token r - bos of the text; row 0 is BOS if there is one. */
typedef struct feed_doc {
    bool open, begun; /* begun: its entry stands in a batch */
    weir_batch_doc entry;
    weir_tokens t; /* the text's tokens: a view of what weir_feed owns */
    uint8_t *keep; /* [len] rows that --positions asks for */
    int64_t keep_cap;
    int64_t bos, len; /* rows of BOS (0 or 1); rows in all */
    int64_t start;    /* first token of text of the window */
    int64_t done;     /* rows of earlier windows: they are not recorded again */
    int64_t piece;    /* rows of the window that earlier batches took */
    double share[2];  /* of the input consumed before it was read, and after */
} feed_doc;

struct weir_feed {
    const weir_tokenizer *tok;
    weir_docs *docs;
    weir_feed_options o;
    weir_positions positions;
    bool bos;
    int32_t bos_id;
    int64_t room, stride; /* tokens of text in a window; from one to the next */
    int64_t skip;         /* kept rows that are still to be passed over */
    weir_tokens encoded;
    weir_tokens ids; /* --ids: made here, not by the tokenizer */
    feed_doc d;
    weir_feed_counts counts;

    weir_batch b;
    /* columns of the batch: [batch] each */
    weir_seq *seq;
    int32_t *id, *target;
    uint8_t *keep;
    weir_batch_doc *doc;
    int64_t *place, *kept_row, *kept_doc, *kept_pos, *kept_ctx_pos, *kept_off, *kept_len;
    int32_t *kept_id, *kept_next;
    uint8_t *kept_flags;
};

weir_status weir_feed_bos(const weir_row_args *rows, const weir_tokenizer *tok, bool *bos, weir_err *err)
{
    *bos = rows->bos == WEIR_BOS_YES || (rows->bos == WEIR_BOS_AUTO && tok && weir_tokenizer_adds_bos(tok));
    if (*bos && (!tok || weir_tokenizer_bos(tok) < 0))
        return weir_fail(err, WEIR_E_ARG, "this model's tokenizer has no BOS token; use --bos no");
    return WEIR_OK;
}

weir_status weir_feed_stride(const weir_row_args *rows, int64_t ctx, bool bos, int64_t *stride, weir_err *err)
{
    int64_t room = ctx - bos; /* tokens of text in a window */
    if (room < 1)
        return weir_fail(err, WEIR_E_ARG, "--ctx %lld: BOS fills the window and leaves no room for text",
                         (long long)ctx);
    if (rows->stride > ctx)
        return weir_fail(err, WEIR_E_ARG, "--stride %lld leaves out tokens: a window has %lld", (long long)rows->stride,
                         (long long)room);
    /* A stride of a whole window means windows that do not overlap, whether or not BOS takes a row of each. */
    *stride = rows->stride && rows->stride < room ? rows->stride : room;
    return WEIR_OK;
}

/* --- the batch */

static bool alloc_columns(weir_feed *f)
{
    size_t n = (size_t)f->o.batch;
    f->seq = calloc(n, sizeof *f->seq);
    f->id = calloc(n, sizeof *f->id);
    f->target = calloc(n, sizeof *f->target);
    f->keep = calloc(n, sizeof *f->keep);
    f->place = calloc(n, sizeof *f->place);
    f->doc = calloc(n, sizeof *f->doc);
    f->kept_row = calloc(n, sizeof *f->kept_row);
    f->kept_doc = calloc(n, sizeof *f->kept_doc);
    f->kept_pos = calloc(n, sizeof *f->kept_pos);
    f->kept_ctx_pos = calloc(n, sizeof *f->kept_ctx_pos);
    f->kept_off = calloc(n, sizeof *f->kept_off);
    f->kept_len = calloc(n, sizeof *f->kept_len);
    f->kept_id = calloc(n, sizeof *f->kept_id);
    f->kept_next = calloc(n, sizeof *f->kept_next);
    f->kept_flags = calloc(n, sizeof *f->kept_flags);
    return f->seq && f->id && f->target && f->keep && f->place && f->doc && f->kept_row && f->kept_doc && f->kept_pos &&
           f->kept_ctx_pos && f->kept_off && f->kept_len && f->kept_id && f->kept_next && f->kept_flags;
}

static void clear_batch(weir_feed *f)
{
    for (int64_t i = 0; i < f->b.n_docs; i++)
        free(f->doc[i].own);
    f->b = (weir_batch){
        .seq = f->seq, .target = f->target, .doc = f->doc, .kept_row = f->kept_row, .kept_next = f->kept_next};
    f->b.kept = (weir_token_rows){.id = f->kept_id,
                                  .doc = f->kept_doc,
                                  .pos = f->kept_pos,
                                  .ctx_pos = f->kept_ctx_pos,
                                  .byte_off = f->kept_off,
                                  .byte_len = f->kept_len,
                                  .flags = f->kept_flags};
}

static void keep_row(weir_feed *f, int64_t row, int64_t doc_row, int64_t ctx_pos)
{
    const feed_doc *d = &f->d;
    int64_t k = f->b.kept.n++, text = doc_row - d->bos;
    f->kept_row[k] = row;
    f->kept_doc[k] = f->counts.docs - 1;
    f->kept_pos[k] = doc_row;
    f->kept_ctx_pos[k] = ctx_pos;
    f->kept_id[k] = text < 0 ? f->bos_id : d->t.id[text];
    f->kept_next[k] = text + 1 < d->t.n ? d->t.id[text + 1] : -1;
    f->kept_off[k] = text < 0 ? 0 : d->t.byte_off[text];
    f->kept_len[k] = text < 0 ? 0 : d->t.byte_len[text];
    f->kept_flags[k] = text < 0 ? WEIR_TOKEN_BOS : d->t.flags[text];
}

/* Adds rows [from, to) of the current window as one sequence; `end` rows of the window are run in all. */
static void add_rows(weir_feed *f, int64_t from, int64_t to, int64_t end, int slot)
{
    const feed_doc *d = &f->d;
    int64_t row = f->b.rows;
    f->seq[f->b.n_seq++] = (weir_seq){.ids = f->id + row,
                                      .n = to - from,
                                      .slot = slot,
                                      .keep = f->keep + row,
                                      .tag = d->entry.doc.index,
                                      .place = f->place + row,
                                      .total = d->len};
    for (int64_t w = from; w < to; w++, row++) {
        bool is_bos = w < d->bos;
        int64_t text = d->start + w - d->bos;
        int64_t doc_row = is_bos ? 0 : text + d->bos;
        f->id[row] = is_bos ? f->bos_id : d->t.id[text];
        f->keep[row] = doc_row >= d->done && d->keep[doc_row];
        f->place[row] = is_bos && d->start > 0 ? -1 : doc_row;
        f->target[row] = w + 1 < end ? d->t.id[is_bos ? d->start : text + 1] : -1;
        if (f->keep[row])
            keep_row(f, row, doc_row, w);
    }
    f->b.rows = row;
}

/* --- documents */

/* weir_doc is borrowed from the reader until the next document. */
bool weir_batch_doc_take(weir_batch_doc *to, const weir_doc *from, const char *source)
{
    size_t bytes = sizeof(weir_field) * (size_t)from->n_fields + strlen(source) + 1;
    for (int i = 0; i < from->n_fields; i++)
        bytes += from->fields[i].name.n + from->fields[i].str.n + 2;
    char *block = malloc(bytes);
    if (!block)
        return false;
    weir_field *fields = (void *)block;
    char *at = block + sizeof(weir_field) * (size_t)from->n_fields;
    for (int i = 0; i < from->n_fields; i++) {
        fields[i] = from->fields[i];
        weir_str *part[2] = {&fields[i].name, &fields[i].str};
        for (int k = 0; k < 2; k++) {
            if (part[k]->n)
                memcpy(at, part[k]->p, part[k]->n);
            at[part[k]->n] = 0;
            part[k]->p = at;
            at += part[k]->n + 1;
        }
    }
    strcpy(at, source);
    *to = (weir_batch_doc){.doc = *from, .source = at, .own = block};
    to->doc.fields = fields;
    to->doc.text = (weir_str){NULL, 0};
    to->doc.ids = NULL;
    return true;
}

static weir_status no_memory(weir_err *err)
{
    return weir_fail(err, WEIR_E_NOMEM, "out of memory for the tokens of a document");
}

static bool grow_ids(weir_tokens *t, int64_t n)
{
    size_t cap = (size_t)n + (size_t)n / 2 + 64;
    int32_t *id = realloc(t->id, cap * sizeof *id);
    t->id = id ? id : t->id;
    int64_t *off = realloc(t->byte_off, cap * sizeof *off);
    t->byte_off = off ? off : t->byte_off;
    int64_t *len = realloc(t->byte_len, cap * sizeof *len);
    t->byte_len = len ? len : t->byte_len;
    uint8_t *flags = realloc(t->flags, cap * sizeof *flags);
    t->flags = flags ? flags : t->flags;
    if (!id || !off || !len || !flags)
        return false;
    t->cap = (int64_t)cap;
    return true;
}

/* Token ids as a document: offsets count the bytes that the tokens stand for. A BOS that the ids bring along is not
 * doubled. */
static weir_status take_ids(weir_feed *f, const weir_doc *doc, const char *source, weir_err *err)
{
    weir_tokens *t = &f->ids;
    if (doc->n_ids > t->cap && !grow_ids(t, doc->n_ids))
        return no_memory(err);
    int64_t off = 0, n = 0;
    for (int64_t k = f->bos && doc->n_ids && doc->ids[0] == f->bos_id; k < doc->n_ids; k++) {
        int32_t id = doc->ids[k];
        if (id < 0 || id >= f->o.vocab)
            return weir_doc_fail(err, doc, source, "token id %d is outside the vocabulary of %lld", id,
                                 (long long)f->o.vocab);
        t->id[n] = id;
        t->byte_off[n] = off;
        t->byte_len[n] = f->tok ? (int64_t)weir_tokenizer_bytes(f->tok, id).n : 0;
        t->flags[n] = f->tok && weir_tokenizer_is_special(f->tok, id) ? WEIR_TOKEN_SPECIAL : 0;
        off += t->byte_len[n++];
    }
    t->n = n;
    return WEIR_OK;
}

/* A text, or the conversation that a document holds. */
static weir_status encode(weir_feed *f, const weir_doc *doc, const char *source, weir_tokens *t, weir_err *err)
{
    weir_status s = f->o.chat ? weir_chat_encode_doc(f->o.chat, doc->text, doc->json, f->o.system, t, err)
                              : weir_tokenizer_encode(f->tok, doc->text.p, doc->text.n, t, err);
    return s == WEIR_OK ? s : weir_err_where(err, source, NULL, doc->byte_off);
}

weir_status weir_feed_tokens(weir_feed *f, const weir_doc *doc, const char *source, weir_tokens *out, weir_err *err)
{
    if (!f->o.rows->ids)
        return encode(f, doc, source, out, err);
    WEIR_TRY(take_ids(f, doc, source, err));
    *out = f->ids;
    f->ids = (weir_tokens){0};
    return WEIR_OK;
}

/* Takes the first of the rows that --positions asks for back: an earlier run has them. */
static void skip_rows(weir_feed *f, uint8_t *keep, int64_t len)
{
    for (int64_t r = 0; f->skip > 0 && r < len; r++) {
        f->skip -= keep[r] != 0;
        keep[r] = 0;
    }
}

/* Tokens, rows and kept rows of a document. */
static weir_status open_doc(weir_feed *f, const weir_doc *doc, const char *source, weir_err *err)
{
    feed_doc *d = &f->d;
    weir_tokens *t = f->o.rows->ids ? &f->ids : &f->encoded;
    WEIR_TRY(f->o.rows->ids ? take_ids(f, doc, source, err) : encode(f, doc, source, t, err));
    d->t = *t;
    d->bos = f->bos;
    int64_t bound = f->o.rows->max_tokens ? f->o.rows->max_tokens - f->counts.tokens - d->bos : INT64_MAX;
    d->t.n = d->t.n < bound ? d->t.n : bound;
    d->len = d->bos + d->t.n;
    if (d->len > d->keep_cap) {
        free(d->keep);
        d->keep_cap = d->len + d->len / 2 + 64;
        d->keep = malloc((size_t)d->keep_cap);
        if (!d->keep) {
            d->keep_cap = 0;
            return no_memory(err);
        }
    }
    WEIR_TRY(weir_positions_keep(&f->positions, doc, source, &d->t, d->bos, d->len, d->keep, err));
    skip_rows(f, d->keep, d->len);
    if (!weir_batch_doc_take(&d->entry, doc, source))
        return no_memory(err);
    d->open = true;
    d->begun = false;
    d->start = d->done = d->piece = 0;
    f->counts.docs++;
    f->counts.tokens += d->len;
    f->counts.lost_bytes += d->t.lost_bytes;
    f->counts.lost_docs += d->t.lost_bytes > 0;
    return WEIR_OK;
}

static weir_status next_doc(weir_feed *f, bool *more, weir_err *err)
{
    weir_doc doc;
    int64_t bound = f->o.rows->max_tokens;
    *more = false;
    if (bound && f->counts.tokens >= bound)
        return WEIR_OK;
    f->d.share[0] = weir_docs_progress(f->docs);
    WEIR_TRY(weir_docs_next(f->docs, &doc, more, err));
    f->d.share[1] = weir_docs_progress(f->docs);
    if (!*more)
        return WEIR_OK;
    return open_doc(f, &doc, weir_docs_source(f->docs, doc.source), err);
}

/* The document's entry goes into the batch before its first row, or when it ends without any. */
static void begin_entry(weir_feed *f)
{
    feed_doc *d = &f->d;
    if (d->begun)
        return;
    d->entry.first = f->b.kept.n;
    f->doc[f->b.n_docs++] = d->entry;
    d->entry.own = NULL;
    d->begun = true;
}

/* --- windows */

static int64_t window_text_end(const weir_feed *f)
{
    int64_t end = f->d.start + f->room;
    return end < f->d.t.n ? end : f->d.t.n;
}

/* Rows of the current window that are run: up to the last one that is kept, or all; 0: none is kept. */
static int64_t window_rows(const weir_feed *f)
{
    const feed_doc *d = &f->d;
    const int64_t last = window_text_end(f) + d->bos - 1; /* row of the document */
    int64_t row = last;
    while (row >= d->done && !d->keep[row])
        row--;
    if (row < d->done)
        return 0;
    row = f->o.whole ? last : row;
    return row < d->bos ? 1 : row - d->start + 1;
}

/* Goes to the next window, or ends the document. */
static void next_window(weir_feed *f)
{
    feed_doc *d = &f->d;
    int64_t end = window_text_end(f);
    d->done = end + d->bos;
    d->start += f->stride;
    d->piece = 0;
    if (end == d->t.n) {
        begin_entry(f);
        d->open = false;
    }
}

/* Feeds the next piece of a window that is longer than a batch; the batch is empty. */
static void take_piece(weir_feed *f, int64_t rows)
{
    feed_doc *d = &f->d;
    int64_t to = rows - d->piece < f->o.batch ? rows : d->piece + f->o.batch;
    begin_entry(f);
    f->b.restart = d->piece == 0;
    f->b.continues = d->piece > 0;
    add_rows(f, d->piece, to, rows, 0);
    d->piece = to;
    if (to == rows)
        next_window(f);
}

static weir_status no_pieces(const weir_feed *f, int64_t rows, weir_err *err)
{
    const weir_doc *doc = &f->d.entry.doc;
    return weir_doc_fail(err, doc, weir_docs_source(f->docs, doc->source),
                         "a window goes through in one pass here, and this one has %lld tokens, but a pass %lld "
                         "rows: --batch %lld, or a smaller --ctx",
                         (long long)rows, (long long)f->o.batch, (long long)rows);
}

static weir_status fill(weir_feed *f, weir_err *err)
{
    while (f->b.n_docs < f->o.batch) {
        if (!f->d.open) {
            bool more;
            WEIR_TRY(next_doc(f, &more, err));
            if (!more)
                return WEIR_OK;
        }
        int64_t rows = window_rows(f);
        if (f->o.whole && rows > f->o.batch)
            return no_pieces(f, rows, err);
        if (rows > f->o.batch) {
            if (f->b.rows == 0)
                take_piece(f, rows);
            return WEIR_OK;
        }
        if (f->b.rows + rows > f->o.batch)
            return WEIR_OK;
        if (rows > 0) {
            begin_entry(f);
            add_rows(f, 0, rows, rows, -1);
        }
        next_window(f);
    }
    return WEIR_OK;
}

weir_status weir_feed_next(weir_feed *f, const weir_batch **b, weir_err *err)
{
    *b = NULL;
    clear_batch(f);
    WEIR_TRY(fill(f, err));
    if (f->b.rows > 0 || f->b.n_docs > 0)
        *b = &f->b;
    return WEIR_OK;
}

/* --- the feed */

weir_status weir_feed_new(weir_feed **out, const weir_tokenizer *tok, weir_docs *docs, const weir_feed_options *o,
                          weir_err *err)
{
    *out = NULL;
    weir_feed *f = calloc(1, sizeof *f);
    if (!f)
        return no_memory(err);
    *f = (weir_feed){.tok = tok, .docs = docs, .o = *o};
    weir_status s = alloc_columns(f) ? WEIR_OK : no_memory(err);
    if (s == WEIR_OK)
        s = weir_positions_parse(&f->positions, o->rows->positions, err);
    if (s == WEIR_OK && f->positions.field && o->rows->ids)
        s = weir_fail(err, WEIR_E_ARG, "@%s is about the bytes of a text, but --ids gives token ids",
                      f->positions.field);
    if (s == WEIR_OK && f->positions.field && o->chat)
        s = weir_fail(err, WEIR_E_ARG, "@%s is about the bytes of a document, but with --chat the template is the text",
                      f->positions.field);
    if (s == WEIR_OK && !o->chat) /* whose template says where BOS stands */
        s = weir_feed_bos(o->rows, tok, &f->bos, err);
    if (s == WEIR_OK)
        s = weir_feed_stride(o->rows, o->ctx, f->bos, &f->stride, err);
    if (s != WEIR_OK) {
        weir_feed_free(f);
        return s;
    }
    f->bos_id = f->bos ? weir_tokenizer_bos(tok) : -1;
    f->room = o->ctx - f->bos;
    *out = f;
    return WEIR_OK;
}

void weir_feed_skip(weir_feed *f, int64_t rows)
{
    f->skip = rows;
}

void weir_feed_free(weir_feed *f)
{
    if (!f)
        return;
    clear_batch(f);
    free(f->d.entry.own);
    free(f->d.keep);
    weir_tokens_free(&f->encoded);
    weir_positions_free(&f->positions);
    void *const own[] = {f->ids.id,   f->ids.byte_off, f->ids.byte_len, f->ids.flags, f->seq,
                         f->id,       f->target,       f->keep,         f->doc,       f->kept_row,
                         f->kept_doc, f->kept_pos,     f->kept_ctx_pos, f->kept_off,  f->kept_len,
                         f->kept_id,  f->kept_flags,   f->kept_next,    f->place};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    free(f);
}

weir_feed_counts weir_feed_counts_of(const weir_feed *f)
{
    return f->counts;
}

double weir_feed_progress(const weir_feed *f)
{
    const feed_doc *d = &f->d;
    double share = d->share[1];
    if (share >= 0 && d->open && d->t.n > 0) /* the reader is past the document, the model is inside it */
        share = d->share[0] + (share - d->share[0]) * (double)d->start / (double)d->t.n;
    if (f->o.rows->max_tokens) {
        double part = (double)f->counts.tokens / (double)f->o.rows->max_tokens;
        share = part > share ? part : share;
    }
    return share < 1 ? share : 1;
}
