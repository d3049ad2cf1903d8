/* weir count: parameters, FLOPs and bytes of a model, from its configuration or its checkpoint, without its weights. */
#include <stdlib.h>

#include "cli/output.h"
#include "cli/say.h"
#include "count/count.h"

#define AT(field) offsetof(weir_count_args, field)
static const weir_opt own_opts[] = {
    {"lora", 0, NULL, WEIR_OPT_INT, "R", 1, 1 << 20, NULL, "count LoRA adapters of this rank", AT(lora)},
    {"lora-targets", 0, NULL, WEIR_OPT_STR, "LIST", 0, 0, "q,v",
     "matrices that have an adapter: q, k, v, o, gate, up, down, or all", AT(lora_targets)},
    {"train-tokens", 0, NULL, WEIR_OPT_REAL, "D", 1, 0, NULL, "FLOPs of training on D tokens: 6ND (300e9)",
     AT(train_tokens)},
    {"bits", 0, NULL, WEIR_OPT_STR, "LIST", 0, 0, "16,8,4", "bytes of every part at so many bits a parameter",
     AT(bits)},
    {"format", 0, NULL, WEIR_OPT_CHOICE, "text|tsv", 0, 0, "text", "form of the result; tsv: a line a model",
     AT(format)},
    {"width", 0, NULL, WEIR_OPT_INT, "N", 20, 10000, NULL, "columns of the pictures (the terminal's, else 120)",
     AT(width)},
    {"svg", 0, NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL,
     "also draw a layer and the model to scale, as a picture of its own", AT(svg)},
    {"out", 'o', NULL, WEIR_OPT_STR, "FILE", 0, 0, NULL, "write to this file; a name in .svg: the picture alone",
     AT(path)},
    {"force", 0, NULL, WEIR_OPT_FLAG, NULL, 0, 0, NULL, "replace FILE, whatever it is", AT(force)},
};
static const weir_opt_group own_group = {"What is counted", own_opts, sizeof own_opts / sizeof *own_opts};
static const weir_opt_use options[] = {
    {&own_group, 0}, {&weir_opts_model, AT(model)}, {&weir_opts_out, AT(out)}, {NULL, 0}};
static const weir_opt_rule rules[] = {
    {"json", WEIR_OPT_EXCLUDES, "format"}, {"lora-targets", WEIR_OPT_NEEDS, "lora"}, {NULL, WEIR_OPT_NEEDS, NULL}};

static bool is_picture(const char *path)
{
    return path && weir_ends_with(path, ".svg");
}

static int put_result(void *ctx, FILE *out)
{
    const weir_counting *c = ctx;
    if (c->a->out.json)
        weir_count_put_json(c, out);
    else if (c->a->format == WEIR_COUNT_TSV)
        weir_count_put_tsv(c, out);
    else if (c->n > 1)
        weir_count_put_side(c, out);
    else
        weir_count_put_text(c, out);
    return WEIR_EXIT_OK;
}

static int put_picture(void *ctx, FILE *out)
{
    weir_count_put_svg(ctx, out);
    return WEIR_EXIT_OK;
}

static weir_output_file result_of(const weir_count_args *a)
{
    static const weir_output_mark json = {"{\"format\":\"weir-count\"", NULL}, tsv = {"model\ttotal_params\t", NULL},
                                  text = {"", "layers"};
    const weir_output_mark *m = a->out.json ? &json : a->format == WEIR_COUNT_TSV ? &tsv : &text;
    return (weir_output_file){.path = a->path, .begin = m->begin, .holds = m->holds, .force = a->force};
}

static weir_output_file picture_of(const weir_count_args *a)
{
    return (weir_output_file){
        .path = a->svg ? a->svg : a->path, .begin = "<?xml", .holds = "<desc>weir count", .force = a->force};
}

static int check(const weir_cli *cli, const weir_count_args *a, bool result, bool picture)
{
    const weir_output_file text = result_of(a), svg = picture_of(a);
    int code = WEIR_EXIT_OK;
    if (is_picture(a->path) && (a->out.json || weir_cli_given(cli, "format")))
        return weir_cli_usage(cli, "-o %s is a picture: --json and --format are about text", a->path);
    if (is_picture(a->path) && a->svg)
        return weir_cli_usage(cli, "-o %s and --svg both name a picture", a->path);
    if (cli->n_operands && a->model.path)
        return weir_cli_usage(cli, "models are named as operands: --model %s is one more, or none", a->model.path);
    if (a->path && a->svg && weir_output_same(a->path, a->svg))
        return weir_cli_usage(cli, "-o and --svg name the same file");
    if (result)
        code = weir_output_free(cli, &text);
    if (code == WEIR_EXIT_OK && picture)
        code = weir_output_free(cli, &svg);
    return code;
}

static int run_tool(weir_cli *cli, void *args)
{
    const weir_count_args *a = args;
    const bool picture = a->svg || is_picture(a->path), result = !is_picture(a->path);
    const weir_output_file text = result_of(a), svg = picture_of(a);
    cli->quiet = a->out.quiet;
    weir_counting *c = calloc(1, sizeof *c);
    if (!c)
        return weir_cli_error(cli, "out of memory");
    c->cli = cli;
    c->a = a;
    int code = check(cli, a, result, picture);
    if (code == WEIR_EXIT_OK)
        code = weir_count_take(c);
    if (code == WEIR_EXIT_OK && picture)
        code = weir_output_put(cli, &svg, put_picture, c);
    if (code == WEIR_EXIT_OK && result)
        code = weir_output_put(cli, &text, put_result, c);
    weir_count_free(c);
    free(c);
    return code;
}

const weir_tool weir_tool_count = {
    .name = "count",
    .summary = "parameters, FLOPs and bytes of a model, from its config.json or its checkpoint",
    .operands = "[CONFIG.json|DIR|FILE.gguf...]",
    .about =
        "Weighs a transformer without reading a weight: parameters by component, of a layer and of the whole; active "
        "parameters with and without the input table; FLOPs, cache and bytes; rules of thumb with their error; a layer "
        "and the model drawn to scale. Far more architectures can be weighed than run: mixtures of experts, latent "
        "attention, encoders, Mamba-2 hybrids. Several models stand side by side.\n"
        "Where there is a checkpoint (a directory with safetensors, a .safetensors file, a GGUF file) its tensors are "
        "counted too, from the headers, and each difference from the configuration is explained: masks, tied heads "
        "stored twice, rotary frequencies, padding, scales, packed weights.",
    .example = "weir count\n"
               "weir count --lora 16 --lora-targets q,k,v,o --train-tokens 1e9\n"
               "weir count --format tsv",
    .options = options,
    .rules = rules,
    .args_size = sizeof(weir_count_args),
    .run = run_tool,
};
