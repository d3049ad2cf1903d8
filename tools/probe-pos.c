/* weir probe-pos: does the model keep positions apart? Another token is put at one position, and what must not change
 * by a bit is compared: everything at earlier positions, and at all others an MLP's output while its own input is held.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/draw.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/session.h"
#include "cli/signals.h"
#include "cli/target.h"
#include "cli/printable.h"

typedef struct probe_args {
    weir_session_args session;
    int64_t position, seed;
    bool all;
    const char *token, *out;
    bool force;
} probe_args;

#define AT(field) offsetof(probe_args, field)
static const weir_opt own_opts[] = {
    {"position", 0, NULL, WEIR_OPT_INT, "P", -(1 << 30), 1 << 30, NULL,
     "position of each window, BOS counted, whose token is changed; negative: from the end; without it the middle one",
     AT(position)},
    {"all", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "change every position, one after the other", AT(all)},
    {"token", 0, NULL, WEIR_OPT_STR, "TOKEN", 0, 0, NULL,
     "the other token: its text, or #ID; without it one is drawn at random each time", AT(token)},
    {"seed", 0, NULL, WEIR_OPT_INT, "N", 0, 0, "0", "of the tokens that are drawn", AT(seed)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(out)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, whatever it is", AT(force)},
};
static const weir_opt_group own_group = {"What to change", own_opts, sizeof own_opts / sizeof *own_opts};

/* Of the rows of a text the whole windows are run: there is no --positions to cut them. */
static const weir_opt window_opts[] = {
    {"ids", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "the text is token ids, not words", AT(session.rows.ids)},
    {"bos", 0, NULL, WEIR_OPT_CHOICE, "auto|yes|no", 0, 0, "auto",
     "begin documents and windows with the BOS token; auto: as the tokenizer says", AT(session.rows.bos)},
    {"ctx", 0, NULL, WEIR_OPT_INT, "N", 1, 0, NULL,
     "tokens of a window, BOS counted; without it the model's context, or --batch if that is less",
     AT(session.rows.ctx)},
};
static const weir_opt_group window_group = {"Tokens", window_opts, sizeof window_opts / sizeof *window_opts};

static const weir_opt_use options[] = {{&own_group, 0},
                                       {&weir_opts_model, AT(session.model)},
                                       {&weir_opts_text, AT(session.text)},
                                       {&window_group, 0},
                                       {&weir_opts_edit, AT(session.edit)},
                                       {&weir_opts_attach, AT(session.attach)},
                                       {&weir_opts_run, AT(session.run)},
                                       {&weir_opts_out, AT(session.out)},
                                       {NULL, 0}};
static const weir_opt_rule rules[] = {
    {"all", WEIR_OPT_EXCLUDES, "position"}, {"token", WEIR_OPT_EXCLUDES, "seed"}, {NULL, WEIR_OPT_NEEDS, NULL}};

/* What is checked, a pass for each: EARLIER all positions before the changed one, at every hook point; HELD the MLPs,
 * whose input at all positions but the changed one is that of the text as it was. */
typedef enum check_kind { EARLIER, HELD, CHECKS } check_kind;

/* The first element that is not the same. */
typedef struct difference {
    const weir_point *point; /* NULL: none */
    int64_t doc, pos, changed, element;
    float was, is;
} difference;

typedef struct check {
    int64_t rows, differ; /* of all points: compared; not the same */
    difference first;
} check;

typedef struct probe {
    weir_cli *cli;
    probe_args *a;
    weir_session s;
    int32_t token; /* -1: drawn */
    uint64_t state;
    int32_t *id; /* [ctx] the changed window */
    check check[CHECKS];
    check_kind kind; /* of the pass */
    int64_t at;      /* row of a window that is changed */
    int64_t windows, probes, tokens;
    int64_t mlps, reached; /* MLPs whose input at the changed position was seen; those where it was another one */
    FILE *out;
} probe;

/* --- comparing: a pass has the window twice, as it was and changed */

static bool is_mlp(weir_site s)
{
    return s == WEIR_SITE_MLP_PRE || s == WEIR_SITE_MLP_PRE_LINEAR || s == WEIR_SITE_MLP_POST ||
           s == WEIR_SITE_LN2_POST_SCALE || s == WEIR_SITE_LN2_POST_NORM || s == WEIR_SITE_MLP_OUT;
}

static weir_want wants(void *self, const weir_point *p)
{
    (void)self;
    return p->site == WEIR_SITE_LN2_OUT ? WEIR_WRITE : WEIR_READ;
}

static int64_t first_difference(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            return i;
    return -1;
}

static void compare_row(probe *p, const weir_value *v, int64_t row)
{
    const int64_t n = v->rows->n / 2, w = v->width;
    const float *was = v->data + row * w, *is = was + n * w;
    check *c = &p->check[p->kind];
    c->rows++;
    if (memcmp(was, is, (size_t)w * sizeof *was) == 0)
        return;
    const int64_t i = first_difference(was, is, w);
    c->differ++;
    if (!c->first.point)
        c->first = (difference){.point = v->point,
                                .doc = v->rows->tag[row],
                                .pos = v->rows->doc_pos[row],
                                .changed = v->rows->doc_pos[p->at],
                                .element = i,
                                .was = was[i],
                                .is = is[i]};
}

static void hold_input(probe *p, const weir_value *v)
{
    const int64_t n = v->rows->n / 2, w = v->width;
    float *was = v->data, *is = v->data + n * w;
    p->mlps++;
    p->reached += memcmp(was + p->at * w, is + p->at * w, (size_t)w * sizeof *was) != 0;
    memcpy(is, was, (size_t)(p->at * w) * sizeof *was);
    memcpy(is + (p->at + 1) * w, was + (p->at + 1) * w, (size_t)((n - p->at - 1) * w) * sizeof *was);
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    probe *p = self;
    const int64_t n = v->rows->n / 2;
    (void)err;
    if (p->kind == EARLIER) {
        for (int64_t row = 0; row < p->at; row++)
            compare_row(p, v, row);
    } else if (v->point->site == WEIR_SITE_LN2_OUT) {
        hold_input(p, v);
    } else if (is_mlp(v->point->site)) {
        for (int64_t row = 0; row < n; row++)
            if (row != p->at)
                compare_row(p, v, row);
    }
    return WEIR_OK;
}

static const weir_hook_class comparer = {.struct_size = sizeof(weir_hook_class),
                                         .abi = WEIR_HOOK_ABI,
                                         .name = "probe-pos",
                                         .wants = wants,
                                         .on_value = on_value};

/* --- probes */

/* A token that is not `was`; false: there is none to be had. */
static bool other_token(probe *p, int32_t was, int32_t *id)
{
    enum { TRIES = 1000 };
    *id = p->token;
    for (int i = 0; p->token < 0 && i < TRIES && (i == 0 || *id == was); i++)
        *id = weir_draw_token(&p->state, p->s.tok, p->s.info->V);
    return *id != was;
}

static weir_status probe_at(probe *p, const weir_seq *window, int64_t at, weir_err *err)
{
    weir_seq both[2] = {*window, *window};
    weir_status st = WEIR_OK;
    int32_t other;
    if (!other_token(p, window->ids[at], &other))
        return WEIR_OK;
    memcpy(p->id, window->ids, (size_t)window->n * sizeof *p->id);
    p->id[at] = other;
    p->at = at;
    both[1].ids = p->id;
    both[0].keep = both[1].keep = NULL;
    for (int kind = 0; st == WEIR_OK && kind < CHECKS; kind++) {
        p->kind = (check_kind)kind;
        st = weir_run_forward(p->s.run, both, 2, 0, err);
    }
    p->probes++;
    return st;
}

static weir_status probe_window(probe *p, const weir_seq *window, weir_err *err)
{
    const int64_t n = window->n, named = p->a->position < 0 ? n + p->a->position : p->a->position;
    const int64_t first = p->a->all ? 0 : weir_cli_given(p->cli, "position") ? named : n / 2;
    const int64_t end = p->a->all ? n : first + 1;
    p->windows++;
    p->tokens += n;
    if (first < 0 || first >= n)
        return WEIR_OK;
    for (int64_t at = first; at < end && !weir_signals_seen(); at++)
        WEIR_TRY(probe_at(p, window, at, err));
    return WEIR_OK;
}

static weir_status run_windows(probe *p, weir_err *err)
{
    weir_progress progress;
    const weir_batch *b;
    weir_status st;
    weir_progress_start(&progress, p->cli);
    while (!weir_signals_seen() && (st = weir_feed_next(p->s.feed, &b, err)) == WEIR_OK && b) {
        for (int64_t i = 0; st == WEIR_OK && i < b->n_seq; i++)
            st = probe_window(p, &b->seq[i], err);
        if (st != WEIR_OK)
            break;
        weir_progress_update(&progress, weir_feed_progress(p->s.feed), p->tokens);
    }
    weir_progress_stop(&progress, p->cli);
    return weir_signals_seen() ? weir_fail(err, WEIR_E_IO, "stopped by signal %d", weir_signals_seen()) : st;
}

/* --- the result */

static bool holds(const probe *p)
{
    return p->check[EARLIER].differ == 0 && p->check[HELD].differ == 0;
}

static void put_check_json(const check *c, const char *name, weir_jsonw *w)
{
    weir_jsonw_key(w, name);
    weir_jsonw_object(w);
    weir_jsonw_key_int(w, "rows", c->rows);
    weir_jsonw_key_int(w, "differ", c->differ);
    if (c->first.point) {
        weir_jsonw_key(w, "first");
        weir_jsonw_object(w);
        weir_jsonw_key_cstr(w, "hook", c->first.point->name);
        weir_jsonw_key_int(w, "doc", c->first.doc);
        weir_jsonw_key_int(w, "pos", c->first.pos);
        weir_jsonw_key_int(w, "changed_pos", c->first.changed);
        weir_jsonw_key_int(w, "element", c->first.element);
        weir_jsonw_key(w, "was");
        weir_jsonw_float(w, c->first.was);
        weir_jsonw_key(w, "is");
        weir_jsonw_float(w, c->first.is);
        weir_jsonw_end(w);
    }
    weir_jsonw_end(w);
}

static void put_json(const probe *p)
{
    weir_jsonw w;
    weir_jsonw_init(&w, p->out);
    weir_jsonw_object(&w);
    weir_jsonw_key_cstr(&w, "model", p->s.info->name);
    weir_jsonw_key_bool(&w, "bos", p->s.bos);
    weir_jsonw_key_int(&w, "seed", p->a->seed);
    weir_jsonw_key_int(&w, "windows", p->windows);
    weir_jsonw_key_int(&w, "tokens", p->tokens);
    weir_jsonw_key_int(&w, "probes", p->probes);
    weir_jsonw_key_bool(&w, "holds", holds(p));
    put_check_json(&p->check[EARLIER], "earlier", &w);
    put_check_json(&p->check[HELD], "mlp_held", &w);
    weir_jsonw_key_int(&w, "mlps", p->mlps);
    weir_jsonw_key_int(&w, "mlps_reached", p->reached);
    weir_jsonw_key(&w, "interventions");
    weir_attach_write(&p->s.attach, &w);
    weir_jsonw_end(&w);
    fputc('\n', p->out);
}

static void put_check(const probe *p, const check *c, const char *what)
{
    char rows[32], differ[32];
    fprintf(p->out, "%-50s %12s rows compared, ", what, weir_commas(c->rows, rows));
    if (c->differ == 0)
        fputs("all the same to the bit\n", p->out);
    else
        fprintf(p->out, "%s differ\n", weir_commas(c->differ, differ));
}

static void put_text(const probe *p)
{
    char windows[32], tokens[32], probes[32], mlps[32], reached[32];
    const weir_point *points;
    char what[80];
    weir_put_printable(p->out, p->s.info->name, 0);
    fprintf(p->out, ": another token at %s position%s (%s window%s, %s tokens)\n",
            weir_commas(p->probes, probes), p->probes == 1 ? "" : "s", weir_commas(p->windows, windows),
            p->windows == 1 ? "" : "s", weir_commas(p->tokens, tokens));
    snprintf(what, sizeof what, "earlier positions, all %lld hook points",
             (long long)weir_model_points(p->s.model, &points));
    put_check(p, &p->check[EARLIER], what);
    put_check(p, &p->check[HELD], "MLPs at other positions, their own input held");
    fprintf(p->out, "at the changed position %s of %s MLPs read another input\n", weir_commas(p->reached, reached),
            weir_commas(p->mlps, mlps));
}

/* Said whatever the form of the result. */
static void complain(const probe *p)
{
    static const char *const why[CHECKS] = {
        "what came before a changed token is not the same",
        "an MLP's output at another position changed with a token, its own input held"};
    for (int i = 0; i < CHECKS; i++) {
        const difference *d = &p->check[i].first;
        if (d->point)
            weir_cli_error(p->cli,
                           "%s: %s at document %lld, position %lld, element %lld is %.9g, and %.9g with the token "
                           "at position %lld changed",
                           why[i], d->point->name, (long long)d->doc, (long long)d->pos, (long long)d->element,
                           (double)d->was, (double)d->is, (long long)d->changed);
    }
}

static int check_probes(const probe *p)
{
    if (p->windows == 0)
        return weir_cli_error(p->cli, "the input holds no document");
    if (p->probes == 0 && p->token >= 0)
        return weir_cli_error(p->cli, "--token %s stands there already, or no window has this --position", p->a->token);
    if (p->probes == 0)
        return weir_cli_error(p->cli, "no window has the position %lld", (long long)p->a->position);
    if (p->check[EARLIER].rows + p->check[HELD].rows == 0)
        return weir_cli_error(p->cli, "a window of one token has no other position to look at");
    return WEIR_EXIT_OK;
}

static int measure(void *ctx, FILE *out)
{
    probe *p = ctx;
    weir_err err = {0};
    p->out = out;
    if (run_windows(p, &err) != WEIR_OK)
        return weir_cli_fail(p->cli, &err);
    const int code = check_probes(p);
    if (code != WEIR_EXIT_OK)
        return code;
    if (weir_run_finish(p->s.run, p->a->session.out.json ? NULL : out, &err) != WEIR_OK)
        return weir_cli_fail(p->cli, &err);
    if (p->a->session.out.json)
        put_json(p);
    else
        put_text(p);
    weir_attach_say(&p->s.attach, p->cli);
    return WEIR_EXIT_OK;
}

/* --- the tool */

static int open_model(probe *p)
{
    int code = weir_session_model(&p->s);
    const int64_t batch = p->a->session.run.batch;
    if (code != WEIR_EXIT_OK)
        return code;
    if (p->a->session.rows.ctx > batch)
        return weir_cli_usage(p->cli, "--ctx %lld: a window must fit into a batch, and --batch is %lld",
                              (long long)p->a->session.rows.ctx, (long long)batch);
    p->s.ctx = p->s.ctx < batch ? p->s.ctx : batch;
    p->id = calloc((size_t)p->s.ctx, sizeof *p->id);
    return p->id ? WEIR_EXIT_OK : weir_cli_error(p->cli, "out of memory");
}

static int open_text(probe *p)
{
    p->s.in.one_sentence = true;
    p->a->session.rows.positions = "all";
    int code = weir_session_text(&p->s);
    if (code == WEIR_EXIT_OK && p->a->token)
        code = weir_token_named(p->cli, "--token", p->s.tok, p->s.info->V, p->a->token, strlen(p->a->token), &p->token);
    return code;
}

/* A pass has a window twice. A short text needs no room for long ones: a token takes no more than a few of its bytes.
 */
static int open_run(probe *p)
{
    weir_err err = {0};
    int64_t *batch = &p->a->session.run.batch;
    const int64_t longest = p->s.in.bytes >= 0 && p->s.in.bytes < p->s.ctx / 3 ? 3 * p->s.in.bytes + 8 : p->s.ctx;
    *batch = 2 * (longest < p->s.ctx ? longest : p->s.ctx);
    int code = weir_session_run(&p->s);
    if (code == WEIR_EXIT_OK && weir_run_hook_object(p->s.run, &comparer, p, &err) != WEIR_OK)
        code = weir_cli_fail(p->cli, &err);
    return code == WEIR_EXIT_OK ? weir_session_prepare(&p->s, 0) : code;
}

static int run_tool(weir_cli *cli, void *args)
{
    probe_args *a = args;
    probe p = {.cli = cli, .a = a, .s = {.cli = cli, .a = &a->session}, .token = -1, .state = (uint64_t)a->seed};
    const weir_output_file file = {.path = a->out,
                                   .force = a->force,
                                   .begin = a->session.out.json ? "{\"model\":" : "",
                                   .holds = a->session.out.json ? "\"mlps_reached\":" : ": another token at "};
    cli->quiet = a->session.out.quiet;
    int code = weir_output_free(cli, &file);
    if (code == WEIR_EXIT_OK)
        code = open_model(&p);
    if (code == WEIR_EXIT_OK)
        code = open_text(&p);
    weir_signals_catch();
    if (code == WEIR_EXIT_OK)
        code = open_run(&p);
    if (code == WEIR_EXIT_OK)
        code = weir_output_put(cli, &file, measure, &p);
    if (code == WEIR_EXIT_OK && !holds(&p)) {
        complain(&p);
        code = WEIR_EXIT_FALSE;
    }
    free(p.id);
    weir_session_close(&p.s);
    return code;
}

const weir_tool weir_tool_probe_pos = {
    .name = "probe-pos",
    .summary = "check that positions are kept apart: nothing flows backwards, an MLP sees its own input only",
    .operands = "[TEXT... | --file FILE... | < text]",
    .about =
        "Puts another token at one position of the text and runs both. At earlier positions nothing may change by a "
        "bit, at any hook point. And while the input of every MLP is held at the other positions, what it computes "
        "there may not change by a bit: an MLP works position by position. Exit 0 if both hold, 3 with the first "
        "element that differs if not. The text is the first of brook's sentences where none is given.",
    .example = "weir probe-pos\n"
               "weir probe-pos --all 'Boulder is in the state of Colorado.'\n"
               "weir probe-pos --position 4 --token ' near' 'Boulder is in the state of Colorado.'",
    .options = options,
    .rules = rules,
    .args_size = sizeof(probe_args),
    .run = run_tool,
    .more_help = weir_attach_help,
};
