#include <math.h>
#include <stdlib.h>

#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "health.h"

/* --- tokens and lists of lines */

static weir_str bytes_of(const weir_health *h, int32_t id)
{
    return h->s.tok ? weir_tokenizer_bytes(h->s.tok, id) : (weir_str){NULL, 0};
}

/* A token between quotes: for people, or in TSV as JSON text. */
static void put_token(const weir_health *h, int32_t id)
{
    const weir_str bytes = bytes_of(h, id);
    weir_jsonw w;
    if (h->a->format == WEIR_HEALTH_TEXT) {
        weir_put_token(h->out, bytes, id, 0);
        return;
    }
    weir_jsonw_init(&w, h->out);
    weir_jsonw_str(&w, bytes.p, bytes.n);
}

static void put_token_key(const weir_health *h, weir_jsonw *w, int32_t id)
{
    const weir_str bytes = bytes_of(h, id);
    weir_jsonw_key_int(w, "id", id);
    weir_jsonw_key(w, "text");
    weir_jsonw_str(w, bytes.p, bytes.n);
}

static void put_place_keys(const weir_health *h, weir_jsonw *w, const weir_health_place *at)
{
    weir_jsonw_key_int(w, "doc", at->doc);
    weir_jsonw_key_int(w, "pos", at->pos);
    put_token_key(h, w, at->id);
}

static bool token_in_line(const weir_health *h, int64_t i, int line)
{
    return h->token_line[i * h->n_lines + line];
}

static bool dim_in_line(const weir_health *h, int64_t i, int line)
{
    return h->dim[line * h->s.info->C + i].rows > 0;
}

typedef bool (*in_line)(const weir_health *h, int64_t i, int line);

/* "L2-L5,out" */
static void put_lines(const weir_health *h, int64_t i, in_line in)
{
    const char *comma = "";
    for (int line = 0; line < h->n_lines; line++) {
        const int from = line;
        if (!in(h, i, line))
            continue;
        while (line + 1 < h->n_lines && in(h, i, line + 1))
            line++;
        fprintf(h->out, "%s%s", comma, h->line[from].name);
        if (line > from)
            fprintf(h->out, "-%s", h->line[line].name);
        comma = ",";
    }
}

static void put_lines_json(const weir_health *h, weir_jsonw *w, int64_t i, in_line in)
{
    weir_jsonw_key(w, "layers");
    weir_jsonw_array(w);
    for (int line = 0; line < h->n_lines; line++)
        if (in(h, i, line))
            weir_jsonw_cstr(w, h->line[line].name);
    weir_jsonw_end(w);
}

/* --- lists: the most notable first */

typedef struct ranked {
    int64_t i;
    double by;
} ranked;

static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->by != y->by)
        return x->by < y->by ? 1 : -1;
    return x->i < y->i ? -1 : x->i > y->i;
}

/* The line in which a dimension is largest; -1: it is massive in none. */
static int line_of_dim(const weir_health *h, int64_t c)
{
    int best = -1;
    float value = 0;
    for (int line = 0; line < h->n_lines; line++) {
        const weir_health_dim *d = &h->dim[line * h->s.info->C + c];
        if (d->rows > 0 && fabsf(d->value) > value) {
            value = fabsf(d->value);
            best = line;
        }
    }
    return best;
}

/* How notable thing i is; 0: it is not listed. */
static double rank_dim(const weir_health *h, int64_t i)
{
    const int line = line_of_dim(h, i);
    return line < 0 ? 0 : (double)fabsf(h->dim[line * h->s.info->C + i].value);
}

static double rank_token(const weir_health *h, int64_t i)
{
    return (double)h->token[i].massive;
}

/* NULL: out of memory. */
static ranked *list(const weir_health *h, int64_t of, double (*rank)(const weir_health *h, int64_t i), int64_t *n)
{
    ranked *r = calloc((size_t)of, sizeof *r);
    *n = 0;
    for (int64_t i = 0; r && i < of; i++)
        if (rank(h, i) > 0)
            r[(*n)++] = (ranked){i, rank(h, i)};
    if (r)
        qsort(r, (size_t)*n, sizeof *r, by_rank);
    return r;
}

static ranked *list_dims(const weir_health *h, int64_t *n)
{
    return list(h, h->s.info->C, rank_dim, n);
}

static ranked *list_tokens(const weir_health *h, int64_t *n)
{
    return list(h, 2 * h->s.info->V, rank_token, n);
}

/* --- positions */

/* Columns of the text: a place, then a number a line, then a token, for which there is this much room. */
enum { PLACE = 31, CELL = 10, TOKEN = 17 };

/* The line behind the last one that has room beside line `first`. */
static int page_end(const weir_health *h, int first)
{
    if (h->a->format == WEIR_HEALTH_TSV)
        return h->n_lines;
    const int room = (weir_width_of(h->a->width, h->out) - PLACE - TOKEN) / CELL, left = h->n_lines - first;
    return first + (left <= room ? left : room > 1 ? room : 1);
}

static void put_head(const weir_health *h, int first, int end)
{
    const bool tsv = h->a->format == WEIR_HEALTH_TSV;
    fprintf(h->out, tsv ? "doc\tpos\tid\tmassive" : "%8s %6s %7s %7s", "document", "pos", "id", "massive");
    for (int line = first; line < end; line++)
        fprintf(h->out, tsv ? "\t%s" : " %9s", h->line[line].name);
    fputs(tsv ? "\ttext\n" : "  token\n", h->out);
}

static void put_position_json(const weir_health *h, int64_t i)
{
    weir_jsonw w;
    weir_jsonw_init(&w, h->out);
    weir_jsonw_object(&w);
    put_place_keys(h, &w, &h->w.place[i]);
    weir_jsonw_key_int(&w, "massive", h->w.massive[i]);
    weir_jsonw_key(&w, "rms");
    weir_jsonw_object(&w);
    for (int line = 0; line < h->n_lines; line++)
        weir_jsonw_key_double(&w, h->line[line].name, h->w.rms[line * h->s.ctx + i]);
    weir_jsonw_end(&w);
    weir_jsonw_end(&w);
    fputc('\n', h->out);
}

static void put_position(const weir_health *h, int64_t i, int first, int end)
{
    const weir_health_place *at = &h->w.place[i];
    const bool tsv = h->a->format == WEIR_HEALTH_TSV;
    fprintf(h->out, tsv ? "%lld\t%lld\t%d\t%lld" : "%8lld %6lld %7d %7lld", (long long)at->doc, (long long)at->pos,
            at->id, (long long)h->w.massive[i]);
    for (int line = first; line < end; line++) {
        const double rms = h->w.rms[line * h->s.ctx + i];
        char buf[32];
        tsv ? fprintf(h->out, "\t%.9g", rms) : fprintf(h->out, " %9s", weir_rounded(rms, 4, false, buf));
    }
    fputs(tsv ? "\t" : "  ", h->out);
    put_token(h, at->id);
    fputc('\n', h->out);
}

void weir_health_put_window(const weir_health *h)
{
    if (h->a->format == WEIR_HEALTH_NDJSON) {
        for (int64_t i = 0; i < h->w.n; i++)
            put_position_json(h, i);
        return;
    }
    for (int first = 0, end; first < h->n_lines; first = end) {
        end = page_end(h, first);
        if (h->windows == 0 || end - first < h->n_lines) /* one page goes on from window to window */
            put_head(h, first, end);
        for (int64_t i = 0; i < h->w.n; i++)
            put_position(h, i, first, end);
    }
}

/* --- TSV */

static double mean_of(const weir_health_line *l)
{
    return l->rows ? l->sum / (double)l->rows : NAN;
}

static double max_of(const weir_health_line *l)
{
    return l->rows ? l->max : NAN;
}

static void put_layers_tsv(const weir_health *h)
{
    fputs("layer\thook\trows\tmean\tmedian\tmax\tmax_doc\tmax_pos\tmassive_dims\tmassive_rows\tnan\tinf\n", h->out);
    for (int i = 0; i < h->n_lines; i++) {
        const weir_health_line *l = &h->line[i];
        fprintf(h->out, "%s\t%s\t%lld\t%.9g\t%.9g\t%.9g\t%lld\t%lld\t%lld\t%lld\t%lld\t%lld\n", l->name, l->point->name,
                (long long)l->rows, mean_of(l), weir_health_median(h, i), max_of(l), (long long)l->max_at.doc,
                (long long)l->max_at.pos, (long long)l->massive_dims, (long long)l->massive_rows, (long long)l->nan,
                (long long)l->inf);
    }
}

static void put_dims_tsv(const weir_health *h)
{
    fputs("layer\tdim\trows\tfirst_rows\tvalue\tratio\tdoc\tpos\tid\n", h->out);
    for (int line = 0; line < h->n_lines; line++)
        for (int64_t c = 0; c < h->s.info->C; c++) {
            const weir_health_dim *d = &h->dim[line * h->s.info->C + c];
            if (d->rows)
                fprintf(h->out, "%s\t%lld\t%lld\t%lld\t%.9g\t%.9g\t%lld\t%lld\t%d\n", h->line[line].name, (long long)c,
                        (long long)d->rows, (long long)d->first, (double)d->value, d->ratio, (long long)d->at.doc,
                        (long long)d->at.pos, d->at.id);
        }
}

static void put_tokens_tsv(const weir_health *h, const ranked *r, int64_t n)
{
    fputs("id\tfirst\trows\tmassive\tlayers\tratio\tratio_layer\tdoc\tpos\ttext\n", h->out);
    for (int64_t i = 0; i < n; i++) {
        const weir_health_token *t = &h->token[r[i].i];
        fprintf(h->out, "%lld\t%d\t%lld\t%lld\t", (long long)r[i].i / 2, (int)(r[i].i % 2), (long long)t->rows,
                (long long)t->massive);
        put_lines(h, r[i].i, token_in_line);
        fprintf(h->out, "\t%.9g\t%s\t%lld\t%lld\t", t->ratio, h->line[t->line].name, (long long)t->at.doc,
                (long long)t->at.pos);
        put_token(h, t->at.id);
        fputc('\n', h->out);
    }
}

/* --- JSON */

static void put_layer_json(const weir_health *h, weir_jsonw *w, int i)
{
    const weir_health_line *l = &h->line[i];
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "layer", l->name);
    weir_jsonw_key_cstr(w, "hook", l->point->name);
    weir_jsonw_key_int(w, "rows", l->rows);
    weir_jsonw_key_double(w, "mean", mean_of(l));
    weir_jsonw_key_double(w, "median", weir_health_median(h, i));
    weir_jsonw_key_double(w, "max", max_of(l));
    weir_jsonw_key(w, "max_at");
    weir_jsonw_object(w);
    if (l->rows)
        put_place_keys(h, w, &l->max_at);
    weir_jsonw_end(w);
    weir_jsonw_key_int(w, "massive_dims", l->massive_dims);
    weir_jsonw_key_int(w, "massive_rows", l->massive_rows);
    weir_jsonw_key_int(w, "nan", l->nan);
    weir_jsonw_key_int(w, "inf", l->inf);
    if (l->nan + l->inf) {
        weir_jsonw_key(w, "first_not_finite");
        weir_jsonw_object(w);
        put_place_keys(h, w, &l->first);
        weir_jsonw_key_int(w, "dim", l->first_dim);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_dim_json(const weir_health *h, weir_jsonw *w, int line, int64_t c)
{
    const weir_health_dim *d = &h->dim[line * h->s.info->C + c];
    weir_jsonw_object(w);
    weir_jsonw_key_cstr(w, "layer", h->line[line].name);
    weir_jsonw_key_int(w, "dim", c);
    weir_jsonw_key_int(w, "rows", d->rows);
    weir_jsonw_key_int(w, "first_rows", d->first);
    weir_jsonw_key(w, "value");
    weir_jsonw_float(w, d->value);
    weir_jsonw_key_double(w, "ratio", d->ratio);
    weir_jsonw_key(w, "at");
    weir_jsonw_object(w);
    put_place_keys(h, w, &d->at);
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

static void put_token_json(const weir_health *h, weir_jsonw *w, int64_t i)
{
    const weir_health_token *t = &h->token[i];
    weir_jsonw_object(w);
    put_token_key(h, w, t->at.id);
    weir_jsonw_key_bool(w, "first", i % 2);
    weir_jsonw_key_int(w, "rows", t->rows);
    weir_jsonw_key_int(w, "massive", t->massive);
    put_lines_json(h, w, i, token_in_line);
    weir_jsonw_key_double(w, "ratio", t->ratio);
    weir_jsonw_key_cstr(w, "ratio_layer", h->line[t->line].name);
    weir_jsonw_key(w, "at");
    weir_jsonw_object(w);
    put_place_keys(h, w, &t->at);
    weir_jsonw_end(w);
    weir_jsonw_end(w);
}

/* Each list is an array in the one object, or a line a thing, with its writer. */
static void begin_item(weir_jsonw *w, FILE *lines)
{
    if (lines)
        weir_jsonw_init(w, lines);
}

static void end_item(FILE *lines)
{
    if (lines)
        fputc('\n', lines);
}

static void put_layers_json(const weir_health *h, weir_jsonw *w, FILE *lines)
{
    for (int i = 0; i < h->n_lines; i++) {
        begin_item(w, lines);
        put_layer_json(h, w, i);
        end_item(lines);
    }
}

static void put_dims_json(const weir_health *h, weir_jsonw *w, FILE *lines)
{
    for (int line = 0; line < h->n_lines; line++)
        for (int64_t c = 0; c < h->s.info->C; c++)
            if (dim_in_line(h, c, line)) {
                begin_item(w, lines);
                put_dim_json(h, w, line, c);
                end_item(lines);
            }
}

static void put_tokens_json(const weir_health *h, weir_jsonw *w, FILE *lines, const ranked *r, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        begin_item(w, lines);
        put_token_json(h, w, r[i].i);
        end_item(lines);
    }
}

static void put_json(const weir_health *h, const ranked *tokens, int64_t n_tokens)
{
    weir_jsonw w;
    bool finite = true;
    for (int i = 0; i < h->n_lines; i++)
        finite = finite && h->line[i].nan + h->line[i].inf == 0;
    weir_jsonw_init(&w, h->out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "model", h->s.info->name);
    weir_jsonw_key_bool(&w, "bos", h->s.bos);
    weir_jsonw_key_int(&w, "rows", h->rows);
    weir_jsonw_key_int(&w, "windows", h->windows);
    weir_jsonw_key_bool(&w, "finite", finite);
    weir_jsonw_key_bool(&w, "median_exact", h->windows == 1);
    weir_jsonw_key_double(&w, "dim_ratio", h->a->dim_ratio);
    weir_jsonw_key_double(&w, "norm_ratio", h->a->norm_ratio);
    weir_jsonw_key(&w, "layers");
    weir_jsonw_array(&w);
    put_layers_json(h, &w, NULL);
    weir_jsonw_end(&w);
    weir_jsonw_key(&w, "massive_dims");
    weir_jsonw_array(&w);
    put_dims_json(h, &w, NULL);
    weir_jsonw_end(&w);
    weir_jsonw_key(&w, "massive_tokens");
    weir_jsonw_array(&w);
    put_tokens_json(h, &w, NULL, tokens, n_tokens);
    weir_jsonw_end(&w);
    weir_jsonw_key(&w, "interventions");
    if (h->dump)
        weir_jsonw_json(&w, h->interventions);
    else
        weir_attach_write(&h->s.attach, &w);
    weir_jsonw_end(&w);
    fputc('\n', h->out);
}

/* --- text */

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void put_place(const weir_health *h, const weir_health_place *at)
{
    fprintf(h->out, " %8lld %6lld  ", (long long)at->doc, (long long)at->pos);
    put_token(h, at->id);
    fputc('\n', h->out);
}

static void put_layers_text(const weir_health *h)
{
    char rows[32], windows[32];
    weir_put_printable(h->out, h->s.info->name, 0);
    fprintf(h->out, ": RMS of the residual stream, %s row%s in %s window%s%s%s\n",
            weir_commas(h->rows, rows), plural(h->rows), weir_commas(h->windows, windows), plural(h->windows),
            h->s.bos ? ", BOS first" : "", h->windows == 1 ? "" : "; medians within 0.2 %");
    fprintf(h->out, "%-5s %10s %10s %10s  at document    pos  token\n", "", "mean", "median", "max");
    for (int i = 0; i < h->n_lines; i++) {
        const weir_health_line *l = &h->line[i];
        char mean[32], median[32], max[32];
        fprintf(h->out, "%-5s %10s %10s %10s    ", l->name, weir_rounded(mean_of(l), 4, false, mean),
                weir_rounded(weir_health_median(h, i), 4, false, median), weir_rounded(max_of(l), 4, false, max));
        if (l->rows)
            put_place(h, &l->max_at);
        else
            fputs("no row is finite\n", h->out);
    }
}

static void put_more(const weir_health *h, int64_t n)
{
    char more[32];
    if (n == 0)
        fputs("  none\n", h->out);
    else if (n > h->a->k)
        fprintf(h->out, "  ... and %s more\n", weir_commas(n - h->a->k, more));
}

static void put_dims_text(const weir_health *h, const ranked *r, int64_t n)
{
    fprintf(h->out, "massive dimensions: a magnitude above %g x the median of its row\n", h->a->dim_ratio);
    for (int64_t i = 0; i < n && i < h->a->k; i++) {
        const int line = line_of_dim(h, r[i].i);
        const weir_health_dim *d = &h->dim[line * h->s.info->C + r[i].i];
        char rows[32], first[32];
        fprintf(h->out, "  %lld in ", (long long)r[i].i);
        put_lines(h, r[i].i, dim_in_line);
        fprintf(h->out, ": %.6g in %s (%.0f x) at document %lld, position %lld, ", (double)d->value, h->line[line].name,
                d->ratio, (long long)d->at.doc, (long long)d->at.pos);
        put_token(h, d->at.id);
        fprintf(h->out, "; there in %s row%s, %s of them first in a window\n", weir_commas(d->rows, rows),
                plural(d->rows), weir_commas(d->first, first));
    }
    put_more(h, n);
}

static void put_tokens_text(const weir_health *h, const ranked *r, int64_t n)
{
    fprintf(h->out, "massive positions: a norm above %g x the median of its window\n", h->a->norm_ratio);
    for (int64_t i = 0; i < n && i < h->a->k; i++) {
        const weir_health_token *t = &h->token[r[i].i];
        char rows[32], all[32];
        fputs("  ", h->out);
        put_token(h, t->at.id);
        fprintf(h->out, " %s, %s of %s, in ", r[i].i % 2 ? "first in a window" : "later in a window",
                weir_commas(t->massive, rows), weir_commas(t->rows, all));
        put_lines(h, r[i].i, token_in_line);
        fprintf(h->out, ": %.1f x in %s at document %lld, position %lld\n", t->ratio, h->line[t->line].name,
                (long long)t->at.doc, (long long)t->at.pos);
    }
    put_more(h, n);
}

/* --- all of it */

static void put_text(const weir_health *h, const ranked *dims, int64_t n_dims, const ranked *tokens, int64_t n_tokens)
{
    const int per = h->a->per;
    if (per == WEIR_HEALTH_LAYER)
        put_layers_text(h);
    if (per == WEIR_HEALTH_LAYER || per == WEIR_HEALTH_DIM)
        put_dims_text(h, dims, n_dims);
    if (per == WEIR_HEALTH_LAYER || per == WEIR_HEALTH_TOKEN)
        put_tokens_text(h, tokens, n_tokens);
}

static void put_records(const weir_health *h, const ranked *tokens, int64_t n_tokens)
{
    const bool tsv = h->a->format == WEIR_HEALTH_TSV;
    weir_jsonw w;
    if (h->a->per == WEIR_HEALTH_LAYER && tsv)
        put_layers_tsv(h);
    else if (h->a->per == WEIR_HEALTH_LAYER)
        put_layers_json(h, &w, h->out);
    else if (h->a->per == WEIR_HEALTH_DIM && tsv)
        put_dims_tsv(h);
    else if (h->a->per == WEIR_HEALTH_DIM)
        put_dims_json(h, &w, h->out);
    else if (h->a->per == WEIR_HEALTH_TOKEN && tsv)
        put_tokens_tsv(h, tokens, n_tokens);
    else if (h->a->per == WEIR_HEALTH_TOKEN)
        put_tokens_json(h, &w, h->out, tokens, n_tokens);
}

bool weir_health_put(const weir_health *h)
{
    int64_t n_dims, n_tokens;
    ranked *dims = list_dims(h, &n_dims), *tokens = list_tokens(h, &n_tokens);
    const bool ok = dims && tokens;
    if (ok && h->a->session.out.json)
        put_json(h, tokens, n_tokens);
    else if (ok && h->a->format == WEIR_HEALTH_TEXT)
        put_text(h, dims, n_dims, tokens, n_tokens);
    else if (ok)
        put_records(h, tokens, n_tokens);
    free(dims);
    free(tokens);
    return ok;
}
