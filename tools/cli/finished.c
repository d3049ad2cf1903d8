#include "finished.h"

#include <string.h>
#include <unistd.h>

#include "say.h"

typedef struct fact {
    const char *name, *now;
} fact;

static int differs(const weir_cli *cli, const char *path, const char *what, const char *had, const char *now)
{
    enum { SHOWN = 60 };
    return weir_cli_usage(cli,
                          "--resume: %s is complete, but of another run: its %s is \"%.*s\", not \"%.*s\" (without "
                          "--resume it is replaced)",
                          path, what, SHOWN, had, SHOWN, now);
}

static int compare_facts(const weir_cli *cli, const char *path, weir_dump_reader *r, const fact *f, int n)
{
    for (int i = 0; i < n; i++) {
        const char *had = weir_dump_attr(r, f[i].name), *now = f[i].now ? f[i].now : "";
        size_t at = 0;
        had = had ? had : "";
        if (strcmp(had, now) == 0)
            continue;
        while (had[at] && had[at] == now[at])
            at++;
        at = at > 16 ? at - 16 : 0; /* long texts differ somewhere inside */
        return differs(cli, path, f[i].name, had + at, now + at);
    }
    return WEIR_EXIT_OK;
}

static int compare_hooks(const weir_cli *cli, const char *path, const weir_dump_reader *r, const weir_model *m,
                         const weir_selector *sel)
{
    const weir_point *p;
    int64_t n = weir_model_points_all(m, &p);
    for (int64_t i = 0; i < n; i++)
        if (weir_selector_matches(sel, &p[i]) && weir_dump_find(r, p[i].name) < 0)
            return weir_cli_usage(cli,
                                  "--resume: %s is complete, but does not hold %s (without --resume it is replaced)",
                                  path, p[i].name);
    if (weir_dump_n_hooks(r) == weir_selector_count(sel))
        return WEIR_EXIT_OK;
    return weir_cli_usage(
        cli,
        "--resume: %s is complete, but holds more hook points than are asked for (without --resume it is replaced)",
        path);
}

static int compare(const weir_cli *cli, const char *path, weir_dump_reader *r, const weir_model *m,
                   const weir_selector *sel, const weir_dump_options *o, const weir_docs_block *shard)
{
    weir_err err = {0};
    char fingerprint[65], ctx[24], stride[24], compress[24], storage[32] = "float32", block[48] = "";
    if (weir_model_fingerprint(m, o->hash_full, fingerprint, &err) != WEIR_OK)
        return weir_cli_fail(cli, &err);
    snprintf(ctx, sizeof ctx, "%lld", (long long)o->ctx);
    snprintf(stride, sizeof stride, "%lld", (long long)o->stride);
    snprintf(compress, sizeof compress, "%d", o->compress);
    if (shard)
        snprintf(block, sizeof block, "%lld/%lld", (long long)shard->shard, (long long)shard->shards);
    if (o->f16)
        snprintf(storage, sizeof storage, "float16");
    else if (o->mantissa)
        snprintf(storage, sizeof storage, "float32 mantissa %d", o->mantissa);
    const fact facts[] = {{"fingerprint", fingerprint},
                          {"ctx", ctx},
                          {"stride", stride},
                          {"bos", o->bos},
                          {"storage", storage},
                          {"compress", compress},
                          {"interventions", o->interventions},
                          {"edits", o->edits},
                          {"run_options", o->run_options},
                          {"shard", block}};
    if (weir_dump_has_logprob(r) != o->logprob)
        return weir_cli_usage(cli, "--resume: %s is complete, but has %s (without --resume it is replaced)", path,
                              o->logprob ? "no log-probabilities" : "log-probabilities, which are not wanted now");
    int code = compare_facts(cli, path, r, facts, sizeof facts / sizeof *facts);
    return code == WEIR_EXIT_OK ? compare_hooks(cli, path, r, m, sel) : code;
}

int weir_dump_finished(bool *done, const weir_cli *cli, const char *path, const weir_model *m, const weir_selector *sel,
                       const weir_dump_options *o, const weir_docs_block *shard)
{
    weir_err err = {0};
    weir_dump_reader *r;
    char part[4096];
    *done = false;
    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part || access(part, F_OK) == 0 ||
        access(path, F_OK) != 0 || weir_dump_open(&r, path, &err) != WEIR_OK)
        return WEIR_EXIT_OK; /* no dump of ours, or one to go on with: creating it will tell */
    int code = WEIR_EXIT_OK;
    if (weir_dump_is_complete(r)) {
        code = compare(cli, path, r, m, sel, o, shard);
        *done = code == WEIR_EXIT_OK;
    }
    weir_dump_close(r);
    return code;
}
