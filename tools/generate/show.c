/* What was generated, as text that streams, as lines for programs, or as one object. Sequences are shown in the order
 * of the prompts; the first that has not ended streams, those behind it wait.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/printable.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "job.h"

const char *const weir_gen_end_word[] = {
    [WEIR_GEN_RUNNING] = "running", [WEIR_GEN_EOS] = "eos",       [WEIR_GEN_STOP_ID] = "stop-id",
    [WEIR_GEN_STOP] = "stop",       [WEIR_GEN_LENGTH] = "length", [WEIR_GEN_CONTEXT] = "context",
    [WEIR_GEN_CUT] = "interrupted",
};

/* --- text */

void weir_gen_put_text(const weir_gen_job *j, const char *p, size_t n)
{
    if (!j->terminal) {
        fwrite(p, 1, n, stdout);
        return;
    }
    weir_text t = {0};
    weir_gen_printable(&t, p, n);
    fwrite(t.n ? t.p : "", 1, t.n, stdout);
    weir_text_free(&t);
}

/* The prompt before its continuation; the answer of a chat stands by itself. */
static void put_prompt(const weir_gen_job *j, const weir_gen_seq *s)
{
    if (s != j->arm.seq)
        fputc('\n', stdout);
    if (j->session.chat)
        return;
    if (j->shade)
        fputs("\033[1m", stdout);
    weir_gen_put_text(j, s->prompt->text, s->prompt->text_n);
    if (!j->session.tok && s->prompt->text_n) /* ids are words */
        fputc(' ', stdout);
    if (j->shade)
        fputs("\033[0m", stdout);
}

/* What may be shown of the sequence and is not yet. */
static void stream_text(weir_gen_job *j, weir_gen_seq *s)
{
    size_t safe = weir_gen_text_safe(j, s);
    if (safe > s->shown)
        weir_gen_put_text(j, s->text + s->shown, safe - s->shown);
    s->shown = safe > s->shown ? safe : s->shown;
    if (s->end != WEIR_GEN_RUNNING)
        fputc('\n', stdout);
}

/* --- lines */

static void put_ids(weir_jsonw *w, const char *key, const int32_t *id, int64_t n)
{
    weir_jsonw_key(w, key);
    weir_jsonw_array(w);
    for (int64_t i = 0; i < n; i++)
        weir_jsonw_int(w, id[i]);
    weir_jsonw_end(w);
}

void weir_gen_put_seq(weir_jsonw *w, const weir_gen_seq *s)
{
    const int64_t from = s->prompt->t.n;
    weir_jsonw_key(w, "text");
    weir_jsonw_str(w, s->text_n ? s->text : "", s->text_n);
    weir_jsonw_key_cstr(w, "end", weir_gen_end_word[s->end]);
    if (s->stop)
        weir_jsonw_key_cstr(w, "stop", s->stop);
    put_ids(w, "ids", s->id + from, s->n - from);
    if (!s->logprob)
        return;
    weir_jsonw_key(w, "logprobs");
    weir_jsonw_array(w);
    for (int64_t i = from; i < s->n; i++)
        weir_jsonw_float(w, s->logprob[i]);
    weir_jsonw_end(w);
}

static void put_object(weir_jsonw *w, const weir_gen_job *j, const weir_gen_seq *s)
{
    const weir_gen_prompt *p = s->prompt;
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "doc", p->doc.doc.index);
    weir_jsonw_key_int(w, "sample", s->sample);
    if (j->sampling.temperature > 0)
        weir_jsonw_key_int(w, "seed", j->a->seed);
    weir_jsonw_key(w, "prompt");
    weir_jsonw_str(w, p->text, p->text_n);
    put_ids(w, "prompt_ids", p->t.id, p->t.n);
    weir_gen_put_seq(w, s);
    weir_jsonw_end(w);
}

/* A line a token. */
static void put_tsv(const weir_gen_job *j, const weir_gen_seq *s)
{
    if (s == j->arm.seq)
        puts(j->a->logprob ? "doc\tsample\tpos\tid\ttoken\tlogprob" : "doc\tsample\tpos\tid\ttoken");
    for (int64_t i = s->prompt->t.n; i < s->n; i++) {
        weir_text t = {0};
        if (j->session.tok) {
            weir_str b = weir_tokenizer_bytes(j->session.tok, s->id[i]);
            weir_text_printable(&t, b.p, b.n);
        }
        printf("%lld\t%lld\t%lld\t%d\t%.*s", (long long)s->prompt->doc.doc.index, (long long)s->sample, (long long)i,
               s->id[i], (int)t.n, t.n ? t.p : "");
        if (s->logprob)
            printf("\t%.9g", (double)s->logprob[i]);
        putchar('\n');
        weir_text_free(&t);
    }
}

static void put_ndjson(const weir_gen_job *j, const weir_gen_seq *s)
{
    weir_jsonw w;
    weir_jsonw_init(&w, stdout);
    put_object(&w, j, s);
    putchar('\n');
}

/* --- the order */

/* A sequence that a signal met before it began has nothing to show. */
static bool has_begun(const weir_gen_seq *s)
{
    return s->end != WEIR_GEN_CUT || s->n > s->prompt->t.n;
}

static void show(weir_gen_job *j, weir_gen_seq *s)
{
    if (!has_begun(s))
        return;
    if (j->format == WEIR_GEN_TEXT) {
        if (!s->announced)
            put_prompt(j, s);
        s->announced = true;
        stream_text(j, s);
    } else if (j->format == WEIR_GEN_TSV && s->end != WEIR_GEN_RUNNING) {
        put_tsv(j, s);
    } else if (j->format == WEIR_GEN_NDJSON && s->end != WEIR_GEN_RUNNING) {
        put_ndjson(j, s);
    }
    if (j->terminal || s->end != WEIR_GEN_RUNNING) /* whoever reads a pipe has each text when it is done */
        fflush(stdout);
}

void weir_gen_show_grown(weir_gen_job *j, weir_gen_seq *s)
{
    if (s != &j->arm.seq[j->front])
        return;
    show(j, s);
    while (s->end != WEIR_GEN_RUNNING && ++j->front < j->n_seq) {
        s = &j->arm.seq[j->front];
        if (s->n > s->prompt->t.n)
            show(j, s);
    }
}

void weir_gen_show_end(weir_gen_job *j)
{
    weir_jsonw w;
    if (j->format != WEIR_GEN_JSON)
        return;
    weir_jsonw_init(&w, stdout);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "model", j->session.info->name);
    weir_jsonw_key(&w, "texts");
    weir_jsonw_array(&w);
    for (int64_t i = 0; i < j->n_seq; i++)
        if (has_begun(&j->arm.seq[i]))
            put_object(&w, j, &j->arm.seq[i]);
    weir_jsonw_end(&w);
    weir_jsonw_key_int(&w, "tokens", j->generated);
    weir_jsonw_key_int(&w, "rows_run", j->rows);
    weir_jsonw_key_double(&w, "seconds", j->seconds);
    weir_jsonw_key(&w, "interventions");
    weir_attach_write(&j->session.attach, &w);
    weir_jsonw_end(&w);
    putchar('\n');
}
