/* weir direction: directions in the stream, from recordings. */
#include <math.h>
#include <stdlib.h>

#include "cli/say.h"
#include "cli/signals.h"
#include "direction/direction.h"

#define AT(field) offsetof(weir_direction_args, field)
static const weir_opt own_opts[] = {
    {"method", 'm', NULL, WEIR_OPT_CHOICE, WEIR_DIRECTION_METHODS, 0, 0, "mean",
     "mean: the mean of the positive rows minus that of the negative ones; pca: principal components, unit vectors; "
     "probe: "
     "logistic regression, its weights",
     AT(method)},
    {"label", 0, NULL, WEIR_OPT_STR, "FIELD[=VALUE]", 0, 0, NULL,
     "with one dump: documents are positive whose field is true, or above 0, or equal to VALUE; the others that have "
     "it are "
     "negative",
     AT(label)},
    {"hook", 0, NULL, WEIR_OPT_STR, "NAME", 0, 0, NULL,
     "which recording, by its name or its site (resid_post); needless where the dump has one only", AT(hook)},
    {"rows", 0, NULL, WEIR_OPT_CHOICE, WEIR_DIRECTION_ROWS, 0, 0, "last",
     "of each document: its last recorded row, all of them, or their mean", AT(rows)},
    {"components", 'k', NULL, WEIR_OPT_INT, "N", 1, 4096, "1", "pca: how many, those of the largest variance first",
     AT(components)},
    {"pairs", 0, NULL, WEIR_OPT_CHOICE, "auto|yes|no", 0, 0, "auto",
     "pca of two dumps: of the differences between documents of the same number, each in both orders (so their mean is "
     "0); "
     "auto: if every document has such a partner with as many rows; otherwise of all rows together",
     AT(pairs)},
    {"l2", 0, NULL, WEIR_OPT_REAL, "X", 0, 0, "1",
     "probe: the loss has X/2 times the squared length of the weights added", AT(l2)},
    {"held-out", 0, NULL, WEIR_OPT_REAL, "SHARE", 0, 0, "0.2",
     "share of the documents, chosen by a hash of their numbers, that the direction is not made from but tested on",
     AT(held_out)},
    {"seed", 0, NULL, WEIR_OPT_INT, "N", 0, 0, "0", "of what is held out", AT(seed)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write the direction to this safetensors file", AT(path)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, whatever it is", AT(force)},
    {"threads", 't', NULL, WEIR_OPT_INT, "N", 0, 4096, "0", "threads that read the dumps; 0: all processors",
     AT(threads)},
};
static const weir_opt_group own_group = {"Direction", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {{&own_group, 0}, {&weir_opts_out, AT(out)}, {NULL, 0}};

static int check_arguments(weir_direction *d)
{
    const weir_direction_args *a = d->a;
    const int n = d->cli->n_operands;
    if (n < 1 || n > 2)
        return weir_cli_usage(d->cli, "one dump of weir trace, or two: the positive class, then the negative one");
    if (n == 2 && a->label)
        return weir_cli_usage(d->cli, "--label parts the documents of one dump; two dumps are two classes already");
    if (n == 1 && !a->label && a->method != WEIR_DIRECTION_PCA)
        return weir_cli_usage(d->cli, "which documents are positive? --label FIELD[=VALUE], or a second dump");
    if (a->held_out >= 1)
        return weir_cli_usage(d->cli, "--held-out %g: a share is below 1", a->held_out);
    static const struct {
        const char *name;
        int method;
    } of_one[] = {{"components", WEIR_DIRECTION_PCA}, {"pairs", WEIR_DIRECTION_PCA}, {"l2", WEIR_DIRECTION_PROBE}};
    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++)
        if (weir_cli_given(d->cli, of_one[i].name) && a->method != of_one[i].method)
            return weir_cli_usage(d->cli, "--%s is about --method %s", of_one[i].name,
                                  of_one[i].method == WEIR_DIRECTION_PCA ? "pca" : "probe");
    static const char *const of_classes[] = {"held-out", "seed"};
    for (size_t i = 0; i < sizeof of_classes / sizeof *of_classes; i++)
        if (n == 1 && !a->label && weir_cli_given(d->cli, of_classes[i]))
            return weir_cli_usage(d->cli, "--%s: without classes there is nothing to test, and all documents are used",
                                  of_classes[i]);
    if (n == 1 && a->pairs == WEIR_DIRECTION_YES)
        return weir_cli_usage(d->cli, "--pairs yes: pairs are of two dumps");
    return weir_direction_may_save(d);
}

static weir_status find(weir_direction *d, weir_err *err)
{
    static weir_status (*const method[])(weir_direction *, weir_err *) = {weir_direction_mean, weir_direction_pca,
                                                                          weir_direction_probe};
    WEIR_TRY(weir_direction_note_massive(d, err));
    WEIR_TRY(weir_direction_means(d, err));
    WEIR_TRY(method[d->a->method](d, err));
    return weir_direction_measure(d, err);
}

static int compute(weir_direction *d)
{
    weir_err err = {0};
    d->command_line = weir_command_line(d->cli);
    if (!d->command_line)
        return weir_cli_error(d->cli, "out of memory");
    weir_signals_catch();
    const weir_status st = find(d, &err);
    if (weir_signals_seen())
        return weir_cli_error(d->cli, "stopped by signal %d; nothing was written", weir_signals_seen());
    return st == WEIR_OK ? WEIR_EXIT_OK : weir_cli_fail(d->cli, &err);
}

static int run(weir_cli *cli, void *args)
{
    weir_direction d = {.cli = cli, .a = args, .threshold = NAN};
    cli->quiet = d.a->out.quiet;
    int code = check_arguments(&d);
    if (code == WEIR_EXIT_OK)
        code = weir_direction_open(&d);
    if (code == WEIR_EXIT_OK)
        code = compute(&d);
    if (code == WEIR_EXIT_OK)
        code = weir_direction_save(&d);
    if (code == WEIR_EXIT_OK)
        weir_direction_show(&d);
    weir_direction_close(&d);
    return code;
}

const weir_tool weir_tool_direction = {
    .name = "direction",
    .summary = "find a direction in the stream that tells two kinds of text apart",
    .operands = "POSITIVE.h5 [NEGATIVE.h5]",
    .about =
        "Reads dumps of weir trace: two, of which the first is the positive class, or one whose JSONL documents have a "
        "field that parts them (--label). Says how well the direction tells documents apart that it was not made from: "
        "accuracy with a threshold (mean, pca: halfway between the classes; probe: the intercept) and the area under "
        "the ROC curve. FILE holds the tensor `direction` as the method gives it, float32: the difference of means "
        "itself (added once, it takes the negative mean to the positive one), the probe's weights, or with pca one "
        "unit vector a row; its metadata say where it comes from. --add SEL=FILE*C and --project-out SEL=FILE of every "
        "tool that runs a model take it (FILE@0: a row of pca), and weir unembed names its tokens.",
    .example = "printf '%s\\n' 'A fine, sunny day.' 'What a lovely garden!' > glad.txt\n"
               "printf '%s\\n' 'A cold, rainy day.' 'The house burned down.' > sad.txt\n"
               "weir trace --quiet --layer 5 --site resid_post --dump glad.h5 --file glad.txt\n"
               "weir trace --quiet --layer 5 --site resid_post --dump sad.h5 --file sad.txt\n"
               "weir direction glad.h5 sad.h5 --rows mean --held-out 0 -o glad.safetensors\n"
               "weir unembed glad.safetensors -k 5",
    .options = options,
    .args_size = sizeof(weir_direction_args),
    .run = run,
};
