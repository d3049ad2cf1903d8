/* The same shape with weights as before training: a checkpoint that is written, opened, and forgotten. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/say.h"
#include "collapse.h"

static int open_at(weir_collapse *c, const char *dir)
{
    weir_err err = {0};
    weir_model_options o;
    weir_model_options_init(&o);
    o.threads = (int)c->a->session.run.threads;
    if (weir_model_random(dir, c->s.model, (uint64_t)c->a->seed, c->a->deviation, &err) != WEIR_OK ||
        weir_model_open(&c->random, dir, &o, &err) != WEIR_OK)
        return weir_cli_fail(c->cli, &err);
    return WEIR_EXIT_OK;
}

/* The weights stay readable through the open model's map of the file. */
static void remove_all(const char *base, const char *dir)
{
    static const char *const files[] = {"config.json", "model.safetensors"};
    char path[1200];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
    rmdir(base);
}

int weir_collapse_random(weir_collapse *c)
{
    const char *tmp = getenv("TMPDIR");
    char base[1024], dir[1100];
    if (c->a->save)
        return open_at(c, c->a->save);
    const int n = snprintf(base, sizeof base, "%s/weir-collapse-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (n < 0 || (size_t)n >= sizeof base || !mkdtemp(base))
        return weir_cli_error(c->cli, "no room for random weights in %s: set TMPDIR, or name a directory with --save",
                              tmp && *tmp ? tmp : "/tmp");
    snprintf(dir, sizeof dir, "%s/random", base);
    const int code = open_at(c, dir);
    remove_all(base, dir);
    return code;
}
