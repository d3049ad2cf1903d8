#include <weir/text.h>

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "../base/mem.h"
#include "blocks.h"
#include "record.h"
#include "source.h"

#define READ_SIZE ((size_t)256 << 10)
#define DOC_MAX ((size_t)1 << 30)

/* The part of the source that is in memory. A document is always one stretch of it: documents of many lines are found
 * by looking ahead, not by copying lines together. */
typedef struct window {
    char *p;
    size_t begin, end, cap; /* p[begin, end) is unread */
    int64_t off;            /* place of p[begin] in the source */
    int64_t line;           /* 1-based number of the line that begins there */
    bool eof;
} window;

/* A document found at the window's begin. */
typedef struct stretch {
    size_t from, n;              /* its text, relative to the window's begin */
    size_t next;                 /* where the next document begins */
    int64_t lines_before, lines; /* lines between the window's begin and the text; lines up to next */
    bool found;
} stretch;

struct weir_docs {
    weir_docs_options o;
    int text, path; /* next of o.texts, o.paths */
    weir_source *source;
    bool jsonl;
    bool whole; /* WEIR_DOCS_FILE: the document of this source was given */
    window w;
    stretch current; /* handed out; taken out of the window by the next call */
    weir_record record;
    int64_t index, skipped;
    int64_t total, done; /* stored bytes of all paths (-1: unknown), of the finished ones */
    weir_blocks cut;     /* options.shards: the block, and */
    int64_t given;       /* how much of its size has been handed out */
    weir_status status;
};

void weir_docs_options_init(weir_docs_options *o)
{
    *o = (weir_docs_options){.split = WEIR_DOCS_LINE};
}

static const char *field_of(const weir_docs *d)
{
    return d->o.field ? d->o.field : d->o.ids ? "ids" : "text";
}

/* Bytes of all paths together; each must exist, so that a wrong name is reported at once and not after an hour. */
static weir_status measure(weir_docs *d, weir_err *err)
{
    for (int i = 0; i < d->o.n_paths; i++) {
        struct stat st;
        const char *path = d->o.paths[i];
        bool is_stdin = strcmp(path, "-") == 0;
        int failed = is_stdin ? fstat(0, &st) : stat(path, &st);
        if (failed || S_ISDIR(st.st_mode)) {
            weir_fail(err, WEIR_E_IO, "cannot open: %s", strerror(failed ? errno : EISDIR));
            weir_err_where(err, is_stdin ? "stdin" : path, NULL, -1);
            return WEIR_E_IO;
        }
        if (d->o.shards && (is_stdin || !S_ISREG(st.st_mode))) {
            weir_fail(err, WEIR_E_ARG, "can be read only once, but a block of a text takes two readings: use a file");
            weir_err_where(err, is_stdin ? "stdin" : path, NULL, -1);
            return WEIR_E_ARG;
        }
        if (!S_ISREG(st.st_mode))
            d->total = -1;
        else if (d->total >= 0)
            d->total += st.st_size;
    }
    return WEIR_OK;
}

weir_status weir_docs_open(weir_docs **out, const weir_docs_options *o, weir_err *err)
{
    *out = NULL;
    if (o->split == WEIR_DOCS_SEP && (!o->sep || !*o->sep))
        return weir_fail(err, WEIR_E_ARG, "documents are to be split at a line, but which one is not said");
    weir_docs *d = weir_calloc(1, sizeof *d);
    if (!d)
        return weir_nomem(err, "reading text");
    d->o = *o;
    weir_status s = measure(d, err);
    if (s == WEIR_OK && o->shards)
        s = weir_blocks_find(&d->cut, o, err);
    if (s != WEIR_OK)
        weir_docs_free(d);
    else
        *out = d;
    return s;
}

void weir_docs_free(weir_docs *d)
{
    if (!d)
        return;
    weir_source_close(d->source);
    weir_record_free(&d->record);
    weir_blocks_free(&d->cut);
    weir_free(d->w.p);
    weir_free(d);
}

/* --- the window */

static size_t ahead(const window *w)
{
    return w->end - w->begin;
}

static weir_status make_room(window *w, weir_err *err)
{
    if (w->cap - w->end >= READ_SIZE / 2)
        return WEIR_OK;
    if (w->begin >= w->cap / 2 && w->cap - ahead(w) >= READ_SIZE / 2) {
        memmove(w->p, w->p + w->begin, ahead(w));
        w->end -= w->begin;
        w->begin = 0;
        return WEIR_OK;
    }
    size_t cap = w->cap ? w->cap * 2 : READ_SIZE;
    char *p = weir_realloc(w->p, cap, 1);
    if (!p)
        return weir_nomem(err, "a document");
    w->p = p;
    w->cap = cap;
    return WEIR_OK;
}

/* Reads more behind what is there; at the end of the source sets eof. */
static weir_status fill(weir_docs *d, weir_err *err)
{
    window *w = &d->w;
    size_t got;
    if (ahead(w) > DOC_MAX)
        return weir_fail(err, WEIR_E_UNSUPPORTED, "a document of more than 1 GiB: is --docs right?");
    WEIR_TRY(make_room(w, err));
    WEIR_TRY(weir_source_read(d->source, w->p + w->end, w->cap - w->end, &got, err));
    w->end += got;
    w->eof = got == 0;
    return WEIR_OK;
}

/* The line at `from` (relative to begin): its length without \n or \r\n, and where the next one begins. *any false: no
 * line is left. */
static weir_status look_at_line(weir_docs *d, size_t from, size_t *n, size_t *next, bool *any, weir_err *err)
{
    window *w = &d->w;
    for (size_t seen = from;;) {
        const char *p = w->p + w->begin;
        const char *newline = ahead(w) > seen ? memchr(p + seen, '\n', ahead(w) - seen) : NULL;
        if (newline) {
            size_t at = (size_t)(newline - p);
            *n = at - from - (at > from && p[at - 1] == '\r');
            *next = at + 1;
            *any = true;
            return WEIR_OK;
        }
        seen = ahead(w);
        if (w->eof) {
            *n = seen - from;
            *next = seen;
            *any = seen > from;
            return WEIR_OK;
        }
        WEIR_TRY(fill(d, err));
    }
}

static void take(window *w, const stretch *s)
{
    w->begin += s->next;
    w->off += (int64_t)s->next;
    w->line += s->lines;
}

/* --- where a document ends */

static weir_status find_line(weir_docs *d, stretch *s, weir_err *err)
{
    s->lines = 1;
    return look_at_line(d, 0, &s->n, &s->next, &s->found, err);
}

static weir_status find_file(weir_docs *d, stretch *s, weir_err *err)
{
    while (!d->w.eof)
        WEIR_TRY(fill(d, err));
    s->n = s->next = ahead(&d->w);
    s->found = !d->whole;
    d->whole = true;
    return WEIR_OK;
}

/* Lines up to one that equals `sep`, which belongs to no document, or to the end. */
static weir_status find_separated(weir_docs *d, stretch *s, weir_err *err)
{
    size_t n, next, sep = strlen(d->o.sep);
    for (size_t at = 0;; at = next) {
        bool any;
        WEIR_TRY(look_at_line(d, at, &n, &next, &any, err));
        if (!any)
            return WEIR_OK;
        s->found = true;
        s->next = next;
        s->lines++;
        if (n == sep && memcmp(d->w.p + d->w.begin + at, d->o.sep, n) == 0)
            return WEIR_OK;
        s->n = at + n;
    }
}

/* Lines between blank ones. */
static weir_status find_paragraph(weir_docs *d, stretch *s, weir_err *err)
{
    size_t n, next;
    for (size_t at = 0;; at = next) {
        bool any;
        WEIR_TRY(look_at_line(d, at, &n, &next, &any, err));
        if (!any)
            return WEIR_OK;
        s->next = next;
        s->lines++;
        if (n) {
            if (!s->found) {
                s->from = at;
                s->lines_before = s->lines - 1;
            }
            s->found = true;
            s->n = at + n - s->from;
        } else if (s->found) {
            return WEIR_OK;
        }
    }
}

static weir_status find(weir_docs *d, stretch *s, weir_err *err)
{
    *s = (stretch){0};
    if (d->jsonl)
        return find_line(d, s, err);
    switch (d->o.split) {
    case WEIR_DOCS_FILE:
        return find_file(d, s, err);
    case WEIR_DOCS_SEP:
        return find_separated(d, s, err);
    case WEIR_DOCS_BLANK:
        return find_paragraph(d, s, err);
    default:
        return find_line(d, s, err);
    }
}

/* --- sources */

static bool has_suffix(const char *s, size_t n, const char *suffix)
{
    size_t m = strlen(suffix);
    return n >= m && strncasecmp(s + n - m, suffix, m) == 0;
}

static bool is_jsonl(const weir_docs *d, const char *path)
{
    if (d->o.format != WEIR_DOCS_AUTO)
        return d->o.format == WEIR_DOCS_JSONL;
    size_t n = strlen(path);
    n -= has_suffix(path, n, ".gz") ? 3 : 0;
    return has_suffix(path, n, ".jsonl") || has_suffix(path, n, ".ndjson");
}

/* A byte order mark is no text; it counts in offsets. */
static weir_status skip_mark(weir_docs *d, weir_err *err)
{
    window *w = &d->w;
    while (ahead(w) < 3 && !w->eof)
        WEIR_TRY(fill(d, err));
    if (ahead(w) >= 3 && memcmp(w->p + w->begin, "\xef\xbb\xbf", 3) == 0)
        take(w, &(stretch){.next = 3});
    return WEIR_OK;
}

static weir_status open_next(weir_docs *d, weir_err *err)
{
    const char *path = d->o.paths[d->path++];
    WEIR_TRY(weir_source_open(&d->source, path, d->o.stop, d->o.stop_user, err));
    d->jsonl = is_jsonl(d, path);
    d->whole = false;
    d->w = (window){.p = d->w.p, .cap = d->w.cap, .line = 1};
    d->current = (stretch){0};
    return skip_mark(d, err);
}

static void close_current(weir_docs *d)
{
    d->done += weir_source_stored(d->source);
    weir_source_close(d->source);
    d->source = NULL;
}

int weir_docs_n_sources(const weir_docs *d)
{
    return (d->text > 0) + d->path;
}

const char *weir_docs_source(const weir_docs *d, int32_t source)
{
    int path = source - (d->o.n_texts > 0);
    if (path < 0)
        return "arg";
    return strcmp(d->o.paths[path], "-") == 0 ? "stdin" : d->o.paths[path];
}

/* --- documents */

/* An error in a record: its offset becomes that in the source, its file "PATH:LINE". */
static weir_status fail_in(const weir_docs *d, const weir_err *inner, weir_status status, int64_t line, int64_t off,
                           weir_err *err)
{
    weir_buf place = {0};
    const char *name = weir_docs_source(d, weir_docs_n_sources(d) - 1);
    weir_fail(err, status, "%s", inner->msg);
    if (line && weir_buf_printf(&place, "%s:%lld", name, (long long)line) == WEIR_OK)
        name = place.p;
    weir_err_where(err, name, NULL, inner->offset >= 0 ? off + inner->offset : -1);
    weir_buf_free(&place);
    return status;
}

/* Fills out->text or out->ids and fields from the stretch that text is. *empty: nothing in it. */
static weir_status decode(weir_docs *d, weir_str text, bool json, weir_doc *out, bool *empty, weir_err *err)
{
    weir_err inner = {0};
    weir_status s = WEIR_OK;
    weir_record *r = &d->record;
    if (json)
        s = weir_record_json(r, text, field_of(d),
                             d->o.ids          ? WEIR_RECORD_IDS
                             : d->o.json_value ? WEIR_RECORD_JSON
                                               : WEIR_RECORD_TEXT,
                             &inner);
    else if (d->o.ids)
        s = weir_record_ids(r, text, &inner);
    if (s != WEIR_OK)
        return fail_in(d, &inner, s, out->line, out->byte_off, err);
    out->text = d->o.ids ? (weir_str){"", 0} : json ? r->text : text;
    out->json = json && d->o.json_value;
    if (json) {
        out->fields = (const weir_field *)(const void *)r->fields.p;
        out->n_fields = (int)(r->fields.n / sizeof(weir_field));
    }
    if (d->o.ids) {
        out->ids = (const int32_t *)(const void *)r->ids.p;
        out->n_ids = (int64_t)(r->ids.n / sizeof(int32_t));
    }
    *empty = d->o.ids ? !out->n_ids : !out->text.n;
    return WEIR_OK;
}

static bool only_spaces(const char *p, size_t n)
{
    while (n && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++, n--;
    return !n;
}

/* The next document of the open source, empty ones included; *any false: the source ends. */
static weir_status next_in_source(weir_docs *d, weir_doc *out, bool *any, bool *empty, weir_err *err)
{
    window *w = &d->w;
    take(w, &d->current);
    stretch *s = &d->current;
    *s = (stretch){0};
    weir_status status = find(d, s, err);
    if (status != WEIR_OK) {
        weir_err_where(err, weir_source_name(d->source), NULL, w->off);
        return status;
    }
    *any = s->found;
    if (!s->found)
        return WEIR_OK;
    weir_str text = {w->p + w->begin + s->from, s->n};
    out->line = w->line + s->lines_before;
    out->byte_off = w->off + (int64_t)s->from;
    out->byte_len = (int64_t)s->n;
    if (d->jsonl && only_spaces(text.p, text.n)) {
        *empty = true;
        return WEIR_OK;
    }
    return decode(d, text, d->jsonl, out, empty, err);
}

static weir_status next_text(weir_docs *d, weir_doc *out, bool *empty, weir_err *err)
{
    const char *z = d->o.texts[d->text++];
    out->byte_len = (int64_t)strlen(z);
    return decode(d, (weir_str){z, (size_t)out->byte_len}, false, out, empty, err);
}

/* One document, empty or not, from wherever the next one is. */
static weir_status next_any(weir_docs *d, weir_doc *out, bool *more, bool *empty, weir_err *err)
{
    *out = (weir_doc){.text = {"", 0}};
    *more = true;
    if (d->text < d->o.n_texts)
        return next_text(d, out, empty, err);
    for (;;) {
        if (!d->source && d->path == d->o.n_paths) {
            *more = false;
            return WEIR_OK;
        }
        if (!d->source)
            WEIR_TRY(open_next(d, err));
        bool any;
        out->source = weir_docs_n_sources(d) - 1;
        WEIR_TRY(next_in_source(d, out, &any, empty, err));
        if (any)
            return WEIR_OK;
        close_current(d);
    }
}

static weir_status next_of_text(weir_docs *d, weir_doc *out, bool *more, weir_err *err)
{
    bool empty = false;
    *more = false;
    if (d->status != WEIR_OK)
        return weir_fail(err, d->status, "reading on after an error");
    do {
        weir_status s = next_any(d, out, more, &empty, err);
        if (s != WEIR_OK) {
            *more = false;
            return d->status = s;
        }
        d->skipped += *more && empty;
    } while (*more && empty);
    if (*more)
        out->index = d->index++;
    return WEIR_OK;
}

/* Empty documents are counted with the document behind them, those at the end of the text with the last one. */
static weir_status next_of_block(weir_docs *d, weir_doc *out, bool *more, weir_err *err)
{
    const weir_docs_block *b = &d->cut.block;
    *more = false;
    if (b->first == b->end || (d->index >= b->end && b->end < b->docs))
        return WEIR_OK;
    do {
        if (d->index == b->first)
            d->skipped = 0;
        WEIR_TRY(next_of_text(d, out, more, err));
    } while (*more && out->index < b->first);
    if (*more ? out->index >= b->end : d->index < b->end)
        return d->status = weir_fail(err, WEIR_E_FORMAT, "the text changed while it was read");
    d->given += *more ? weir_doc_size(out) : 0;
    return WEIR_OK;
}

weir_status weir_docs_next(weir_docs *d, weir_doc *out, bool *more, weir_err *err)
{
    return d->o.shards ? next_of_block(d, out, more, err) : next_of_text(d, out, more, err);
}

const weir_docs_block *weir_docs_block_of(const weir_docs *d)
{
    return d->o.shards ? &d->cut.block : NULL;
}

const weir_doc *weir_docs_first(const weir_docs *d)
{
    return d->o.shards && d->cut.block.docs ? &d->cut.first : NULL;
}

int64_t weir_docs_skipped(const weir_docs *d)
{
    return d->skipped;
}

double weir_docs_progress(const weir_docs *d)
{
    if (d->o.shards)
        return d->cut.block.size ? (double)d->given / (double)d->cut.block.size : 1;
    if (d->total < 0)
        return -1;
    if (!d->o.n_paths)
        return d->o.n_texts ? (double)d->text / d->o.n_texts : 1;
    int64_t read = d->done + (d->source ? weir_source_stored(d->source) : 0);
    return read < d->total ? (double)read / (double)d->total : d->text < d->o.n_texts ? 0 : 1;
}
