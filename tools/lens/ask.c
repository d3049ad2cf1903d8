/* What is asked of the lens, once there are a model and a tokenizer. */
#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "job.h"

enum { TOP_SHORT = 1, TOP_LONG = 10 }; /* without -k: where only the likeliest is seen; where all can be looked at */

static int open_tuned(weir_lens_job *j)
{
    const weir_tuned_options o = {.kernel = weir_kernel_name(&j->a->session.run),
                                  .threads = (int)j->a->session.run.threads,
                                  .log = weir_cli_log(j->cli)};
    return weir_lens_translate_open(&j->cells.translate, j->cli, j->a->tuned, j->session.model, &j->stack, &o);
}

int weir_lens_ask_lines(weir_lens_job *j, bool (*there)(void *ctx, const weir_point *p), void *ctx)
{
    const weir_lens_choice c = {.sites = j->sites ? j->sites : "resid_post",
                                .layers = j->layers,
                                .step = j->a->step,
                                .norm = (weir_lens_norm)j->a->norm,
                                .there = there,
                                .ctx = ctx};
    int code = weir_lens_stack_make(&j->stack, j->cli, j->session.model, &c);
    j->cells.stack = &j->stack;
    return code == WEIR_EXIT_OK && j->a->tuned ? open_tuned(j) : code;
}

/* --- targets */

/* A token's text for the head, to be freed; ids where there is no tokenizer. */
static char *text_of(const weir_tokenizer *tok, int32_t id)
{
    weir_str bytes = tok ? weir_tokenizer_bytes(tok, id) : (weir_str){NULL, 0};
    char number[24];
    if (bytes.n)
        return strndup(bytes.p, bytes.n);
    snprintf(number, sizeof number, "#%d", id);
    return strdup(number);
}

/* A token that does not count cannot be asked about. */
static int check_padding(const weir_lens_job *j, const char *option, int32_t id)
{
    if (!j->a->mask_padding || id < j->about.padding_from)
        return WEIR_EXIT_OK;
    return weir_cli_usage(j->cli, "%s #%d: the tokenizer has no such token, and --mask-padding leaves it out", option,
                          id);
}

static int read_target(weir_lens_job *j)
{
    j->cells.target = WEIR_TARGET_NONE;
    if (!j->a->target)
        return WEIR_EXIT_OK;
    int32_t *id = &j->cells.target;
    int code = weir_target_parse(j->cli, "--target", j->session.tok, j->about.V, j->a->target, id);
    if (code == WEIR_EXIT_OK)
        code = check_padding(j, "--target", *id);
    if (code != WEIR_EXIT_OK)
        return code;
    j->target = *id >= 0 ? text_of(j->session.tok, *id) : strdup(j->a->target);
    j->about.target = j->target;
    return j->target ? WEIR_EXIT_OK : weir_cli_error(j->cli, "out of memory");
}

static int read_contrast(weir_lens_job *j)
{
    int32_t *id = j->cells.contrast;
    id[0] = id[1] = WEIR_TARGET_NONE;
    if (!j->a->contrast)
        return WEIR_EXIT_OK;
    int code = weir_contrast_parse(j->cli, "--contrast", j->session.tok, j->about.V, j->a->contrast, id);
    for (int i = 0; i < 2 && code == WEIR_EXIT_OK; i++) {
        code = check_padding(j, "--contrast", id[i]);
        j->about.contrast[i] = j->contrast[i] = text_of(j->session.tok, id[i]);
        if (code == WEIR_EXIT_OK && !j->contrast[i])
            code = weir_cli_error(j->cli, "out of memory");
    }
    return code;
}

/* --- statistics */

/* Those that the outputs show: a program may want any of them. */
static void choose_stats(weir_lens_job *j)
{
    const weir_lens_args *a = j->a;
    weir_lens_about *about = &j->about;
    about->shown = a->contrast && !weir_cli_given(j->cli, "stat") ? WEIR_STAT_CONTRAST : (weir_lens_stat)a->stat;
    about->has = 1u << about->shown;
    if (j->format != WEIR_LENS_TEXT && j->format != WEIR_LENS_SVG)
        about->has = (1u << WEIR_STAT_COUNT) - 1;
    if (a->plot)
        about->has |= 1u << WEIR_STAT_RANK | 1u << WEIR_STAT_ENTROPY | 1u << WEIR_STAT_KL;
    if (!a->contrast)
        about->has &= ~(1u << WEIR_STAT_CONTRAST);
    if (a->corpus)
        about->has = 1u << WEIR_STAT_CE | 1u << WEIR_STAT_KL;
}

static int choose_k(weir_lens_job *j)
{
    bool looked_at =
        (j->format == WEIR_LENS_HTML || j->format == WEIR_LENS_NDJSON || j->format == WEIR_LENS_H5) && !j->a->corpus;
    int64_t most = j->a->mask_padding ? j->about.padding_from : j->about.V;
    j->about.k = j->a->k ? j->a->k : looked_at ? TOP_LONG : TOP_SHORT;
    if (j->a->k > most)
        return weir_cli_usage(j->cli, "-k %lld: the model has %lld tokens", (long long)j->a->k, (long long)most);
    j->about.k = j->about.k < most ? j->about.k : most;
    return WEIR_EXIT_OK;
}

/* --- the head */

static void describe(weir_lens_job *j)
{
    static const char *const norm[] = {"recompute", "cached", "none"}; /* in the order of weir_lens_norm */
    const weir_model_info *info = j->session.info;
    const weir_tokenizer *tok = j->session.tok;
    weir_lens_about *a = &j->about;
    int64_t size = tok ? weir_tokenizer_size(tok) : info->V;
    a->norm = norm[j->a->norm];
    a->lens = j->a->tuned ? j->cells.translate.title : "logit lens";
    a->line = j->stack.line;
    a->n_lines = j->stack.n;
    a->V = info->V;
    a->padding_from = size < info->V ? size : info->V;
    a->no_softcap = j->a->no_softcap;
    a->padding_masked = j->a->mask_padding;
}

/* Options that say what the model does not have. */
static void note_idle(const weir_lens_job *j)
{
    if (j->a->no_softcap && !weir_model_point(j->session.model, "hook_logits"))
        weir_cli_note(j->cli, "--no-softcap: %s caps no logits", j->session.info->name);
    if (j->a->mask_padding && j->about.padding_from == j->about.V)
        weir_cli_note(j->cli, "--mask-padding: the tokenizer has all %lld tokens of the model", (long long)j->about.V);
}

int weir_lens_ask(weir_lens_job *j)
{
    describe(j);
    int (*const step[])(weir_lens_job *) = {choose_k, read_target, read_contrast};
    int code = WEIR_EXIT_OK;
    for (size_t i = 0; i < sizeof step / sizeof *step && code == WEIR_EXIT_OK; i++)
        code = step[i](j);
    if (code == WEIR_EXIT_OK) {
        choose_stats(j);
        note_idle(j);
        j->cells.about = &j->about;
        j->cells.norm = (weir_lens_norm)j->a->norm;
    }
    return code;
}
