/* weir rome show: all that an edit's directory says. */
#include "about.h"
#include "cli/common.h"
#include "cli/say.h"

static void put(const char *key, const char *value)
{
    char text[600];
    if (!value)
        return;
    snprintf(text, sizeof text, "%s", value);
    weir_make_printable(text);
    printf("%-14s%s\n", key, text);
}

static void put_request(void *ctx, const char *prompt, const char *subject, const char *target)
{
    (void)ctx;
    printf("request       prompt \"%s\", subject \"%s\", target \"%s\"\n", prompt, subject, target);
}

static void put_beneath(const char *dir)
{
    put("on top of", dir);
}

static void put_text(const weir_edit_look *l)
{
    const weir_edit_about *a = weir_edit_look_about(l);
    const weir_edit_module *m;
    const int64_t n = weir_edit_look_modules(l, &m);
    put("directory", a->dir);
    put("method", a->method ? a->method : "an adapter that was made elsewhere (no edit.json)");
    put("base model", a->base_model);
    put("fingerprint", a->fingerprint);
    put("sha256", a->sha256);
    weir_rome_beneath(a->json, put_beneath);
    weir_rome_requests(a->json, put_request, NULL);
    printf("\n%-48s%6s%8s%8s%14s\n", "module", "rank", "in", "out", "|dW|");
    for (int64_t i = 0; i < n; i++)
        printf("%-48s%6lld%8lld%8lld%14.6g\n", m[i].name, (long long)m[i].r, (long long)m[i].in, (long long)m[i].out,
               m[i].norm);
}

static int run(weir_cli *cli, void *args)
{
    const weir_out_args *a = args;
    weir_err err = {0};
    weir_edit_look *look;
    cli->quiet = a->quiet;
    if (cli->n_operands != 1)
        return weir_cli_usage(cli, "%s", cli->n_operands ? "one directory at a time" : "which directory?");
    if (weir_edit_look_at(&look, cli->operand[0], &err) != WEIR_OK)
        return weir_cli_fail(cli, &err);
    if (a->json) {
        weir_jsonw w;
        weir_jsonw_init(&w, stdout);
        weir_rome_about_json(&w, look, true);
        putchar('\n');
    } else {
        put_text(look);
    }
    weir_edit_look_free(look);
    return WEIR_EXIT_OK;
}

static const weir_opt_use options[] = {{&weir_opts_out, 0}, {NULL, 0}};
const weir_tool weir_rome_show = {
    .name = "show",
    .summary = "all that an edit says: how it was made, for what, which matrices",
    .operands = "DIR",
    .about = "Shows one edit: what its files say of how and for which model it was made, what was asked for, and of "
             "each matrix the rank and the norm of the update. --json adds the whole edit.json, with the measurements "
             "before and after. No model is needed.",
    .example =
        "weir rome edit -s \"Mount Hood\" -p \"{} rises from the\" --target Caucasus -o hood --layer 4 --identity "
        "--no-prefixes -q\n"
        "weir rome show hood",
    .options = options,
    .args_size = sizeof(weir_out_args),
    .run = run,
};
