/* weir roofline: what a token costs in FLOPs and bytes, and how long a machine must take for it. */
#include <stdlib.h>

#include "cli/output.h"
#include "cli/say.h"
#include "roofline/roofline.h"

#define AT(field) offsetof(weir_roofline_args, field)
static const weir_opt own_opts[] = {
    {"hardware", 0, NULL, WEIR_OPT_STR, "NAME|FILE", 0, 0, "h100",
     "a machine of the table below, \"here\" (this one, measured), or a JSON file: {\"name\": \"...\", \"flops\": "
     "989e12, "
     "\"bandwidth\": 3.35e12}",
     AT(hardware)},
    {"context", 'c', NULL, WEIR_OPT_STR, "N|A:B", 0, 0, NULL,
     "tokens of a sequence; A:B: a sweep, doubling. Without it 4096, or the model's context if that is less",
     AT(context)},
    {"batch", 'b', NULL, WEIR_OPT_STR, "N|A:B", 0, 0, "1", "sequences decoded together; A:B: a sweep, doubling",
     AT(batch)},
    {"weights", 0, NULL, WEIR_OPT_REAL, "BITS", 0, 0, "16", "bits of a weight", AT(weight_bits)},
    {"cache", 0, NULL, WEIR_OPT_REAL, "BITS", 0, 0, "16", "bits of a cached key's or value's element", AT(cache_bits)},
    {"activations", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "count what matrices read and write beside their weights too, at 16 bits", AT(activations)},
    {"absorbed", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "latent attention (DeepSeek) works on the latents themselves: more FLOPs a key, and no keys are built again",
     AT(absorbed)},
    {"measure", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL,
     "also run the model here: its time beside what this machine's measured peak and bandwidth allow", AT(measure)},
    {"tokens", 0, NULL, WEIR_OPT_INT, "N", 1, 4096, "16", "with --measure: tokens decoded", AT(tokens)},
    {"threads", 't', NULL, WEIR_OPT_INT, "N", 0, 4096, "0", "of measurements; 0: all processors", AT(threads)},
};
static const weir_opt result_opts[] = {
    {"format", 0, NULL, WEIR_OPT_CHOICE, "text|tsv", 0, 0, "text", "form of the result", AT(format)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file", AT(path)},
    {"svg", 0, NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "draw a sweep into this file", AT(svg)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, whatever it is", AT(force)},
};
static const weir_opt_group own_group = {"Load and machine", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_group result_group = {"Result", result_opts, sizeof result_opts / sizeof *result_opts};
static const weir_opt_use options[] = {{&own_group, 0}, {&result_group, 0}, {&weir_opts_out, AT(out)}, {NULL, 0}};
static const weir_opt_rule rules[] = {
    {"json", WEIR_OPT_EXCLUDES, "format"}, {"tokens", WEIR_OPT_NEEDS, "measure"}, {NULL, WEIR_OPT_NEEDS, NULL}};

static int open_model(weir_rooflining *t)
{
    weir_err err = {0};
    const weir_model_args none = {NULL};
    if (t->cli->n_operands > 1)
        return weir_cli_usage(t->cli, "one model at a time: what is \"%s\"?", t->cli->operand[1]);
    t->model = t->cli->n_operands ? t->cli->operand[0] : weir_model_path(&none, t->brook, sizeof t->brook, &err);
    if (!t->model || weir_blueprint_open(&t->b, t->model, &err) != WEIR_OK ||
        weir_bill_make(&t->bill, t->b, &err) != WEIR_OK ||
        weir_matmuls_of(&t->matmul, &t->n_matmuls, t->b, &err) != WEIR_OK)
        return weir_cli_fail(t->cli, &err);
    for (int i = 0; i < t->b->n_remarks; i++)
        weir_cli_note(t->cli, "%s", t->b->remark[i]);
    if (!t->bill->has_cache)
        return weir_cli_error(t->cli, "%s is no decoder alone: there is no one cost of a token; weir count weighs it",
                              t->b->name);
    return WEIR_EXIT_OK;
}

static weir_output_file file_of(const weir_roofline_args *a)
{
    static const weir_output_mark
        json = {"{\"format\":\"weir-roofline\"", NULL},
        forms[] = {[WEIR_ROOFLINE_TEXT] = {"", "FLOPs a byte"}, [WEIR_ROOFLINE_TSV] = {"context\tbatch\t", NULL}};
    const weir_output_mark *m = a->out.json ? &json : &forms[a->format];
    return (weir_output_file){.path = a->path, .begin = m->begin, .holds = m->holds, .force = a->force};
}

static int run_tool(weir_cli *cli, void *args)
{
    const weir_roofline_args *a = args;
    const weir_output_file file = file_of(a),
                           svg = {.path = a->svg, .begin = "<?xml", .holds = "weir roofline", .force = a->force};
    weir_rooflining t = {.cli = cli, .a = a};
    cli->quiet = a->out.quiet;
    int code = weir_output_free(cli, &file);
    if (code == WEIR_EXIT_OK && a->svg)
        code = weir_output_free(cli, &svg);
    if (code == WEIR_EXIT_OK)
        code = open_model(&t);
    if (code == WEIR_EXIT_OK)
        code = weir_roofline_take(&t);
    if (code == WEIR_EXIT_OK && a->svg && !weir_roofline_swept(&t))
        code = weir_cli_usage(cli, "--svg draws a sweep: --context A:B or --batch A:B");
    if (code == WEIR_EXIT_OK && a->measure)
        code = weir_roofline_measure(&t);
    if (code == WEIR_EXIT_OK)
        code = weir_output_put(cli, &file, weir_roofline_put, &t);
    if (code == WEIR_EXIT_OK && a->svg)
        code = weir_output_put(cli, &svg, weir_roofline_put_svg, &t);
    free(t.point);
    weir_matmuls_free(t.matmul);
    weir_bill_free(t.bill);
    weir_blueprint_free(t.b);
    return code;
}

static void more_help(FILE *out)
{
    fputs("\nMachines (data sheets: dense products of 16-bit numbers; memory)\n", out);
    for (int i = 0; i < weir_hardware_count(); i++) {
        const weir_hardware *h = weir_hardware_at(i);
        fprintf(out, "  %-10s %-31s %7.5g TFLOP/s %6.4g TB/s\n", h->name, h->about, h->flops * 1e-12,
                h->bandwidth * 1e-12);
    }
}

const weir_tool weir_tool_roofline = {
    .name = "roofline",
    .summary = "what a token costs in FLOPs and bytes, and how long a machine must take",
    .operands = "[CONFIG.json|MODEL]",
    .about =
        "Reads a config.json, a model's directory or a GGUF file, no weights, and counts what a decoded token and a "
        "prefill multiply and read: by component, with the cache and its windows, with the experts that a batch "
        "touches. A pass takes at least its FLOPs over the machine's FLOP/s and its bytes over the machine's "
        "bandwidth, whichever is longer. Without an argument: $WEIR_MODEL, else brook.",
    .example = "weir roofline\n"
               "weir roofline --hardware a100 --batch 1:512 --svg batch.svg\n"
               "weir roofline --context 64:512 --format tsv\n"
               "weir roofline --measure --tokens 4 --context 64",
    .options = options,
    .rules = rules,
    .args_size = sizeof(weir_roofline_args),
    .run = run_tool,
    .more_help = more_help,
};
