/* Second moments of the editor's layers: from files, made now, or none. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/changes.h"
#include "cli/feed.h"
#include "cli/say.h"
#include "keys.h"

static char *layer_file(const char *dir, const char *sub, int64_t layer)
{
    char *path = malloc(strlen(dir) + strlen(sub) + 40);
    if (path)
        sprintf(path, "%s%s/layer-%lld.h5", dir, sub, (long long)layer);
    return path;
}

char *weir_editor_own_moments(const weir_editor *e, int64_t layer)
{
    return layer_file(e->model_path, "/moments", layer);
}

/* Edits and interventions that the keys were counted with, as a JSON array; to be freed. NULL: out of memory. */
static char *changes_of(const weir_moments *m)
{
    weir_json j;
    weir_str key, changes = {0};
    const char *source = weir_moments_about_of(m)->source;
    weir_json_init(&j, source, strlen(source), NULL, NULL);
    if (weir_json_peek(&j) == WEIR_JSON_OBJECT) {
        weir_json_object(&j);
        while (weir_json_key(&j, &key))
            if (weir_str_eq(key, "changes"))
                changes = weir_json_raw(&j);
    }
    return weir_json_done(&j) == WEIR_OK && changes.n ? strndup(changes.p, changes.n) : strdup("[]");
}

static int count_items(const char *json)
{
    int n = 0;
    weir_json j;
    weir_json_init(&j, json, strlen(json), NULL, NULL);
    weir_json_array(&j);
    for (; weir_json_item(&j); n++)
        weir_json_skip(&j);
    (void)weir_json_done(&j);
    return n;
}

/* Keys of the model as it is serve edits that pile up; those of a changed one serve only it. */
static int check_changes(const weir_editor *e, const weir_moments *m, const char *path)
{
    char *changes = changes_of(m);
    const int n = changes ? count_items(changes) : 0;
    const bool fine = changes && (n == 0 || (n == e->edits.n && weir_edits_are(&e->edits, changes)));
    char *words = changes && !fine ? weir_changes_words(changes) : NULL;
    int code = WEIR_EXIT_OK;
    if (words)
        code = weir_cli_error(e->cli, "%s: second moments of another model: %s with %s", path,
                              weir_moments_about_of(m)->model, words);
    else if (!fine)
        code = weir_cli_error(e->cli, "out of memory");
    free(words);
    free(changes);
    return code;
}

static int check_moments(const weir_editor *e, const weir_moments *m, const char *path, int64_t layer)
{
    const weir_moments_about *a = weir_moments_about_of(m);
    if (weir_moments_width(m) != e->info->F)
        return weir_cli_error(e->cli, "%s: second moments of %lld neurons; the model's layers have %lld", path,
                              (long long)weir_moments_width(m), (long long)e->info->F);
    if (!a->complete)
        return weir_cli_error(e->cli, "%s: not complete: rome stats --resume goes on with it", path);
    if (a->layer != layer)
        return weir_cli_error(e->cli,
                              "%s: second moments of layer %lld; layer %lld is to be edited: --layer %lld, or those of "
                              "rome stats --layer %lld",
                              path, (long long)a->layer, (long long)layer, (long long)a->layer, (long long)layer);
    if (!*a->fingerprint) {
        weir_cli_note(e->cli, "%s: imported, so that nobody can tell whether the model is right", path);
        return WEIR_EXIT_OK;
    }
    if (strcmp(a->fingerprint, e->fingerprint) != 0)
        return weir_cli_error(e->cli, "%s: second moments of another model (%s)", path, a->model);
    if (a->shards > 1)
        return weir_cli_error(e->cli, "%s: shard %lld of %lld: rome stats --merge makes the whole", path,
                              (long long)a->shard, (long long)a->shards);
    return check_changes(e, m, path);
}

static int read_moments(weir_editor *e, weir_editor_moments *m, int64_t layer)
{
    weir_err err = {0};
    weir_moments *read;
    if (access(m->path, R_OK) != 0 && e->a->moments.n == 0)
        return weir_cli_error(e->cli,
                              "there are no second moments of layer %lld: rome stats --layer %lld --out mom2.h5 makes "
                              "them, --moments mom2.h5 takes them (or --identity does without)",
                              (long long)layer, (long long)layer);
    if (weir_moments_read(&read, m->path, &err) != WEIR_OK || weir_sha256_file(m->path, m->sha256, &err) != WEIR_OK)
        return weir_cli_fail(e->cli, &err);
    int code = check_moments(e, read, m->path, layer);
    m->count = weir_moments_count(read);
    if (code == WEIR_EXIT_OK &&
        weir_covariance_new(&m->covariance, weir_moments_sum(read), e->info->F, m->count, e->a->ridge, &err) != WEIR_OK)
        code = weir_cli_fail_at(e->cli, m->path, &err);
    weir_moments_free(read);
    return code;
}

/* Where each layer's file lies, or would. */
static int plan_moments(weir_editor *e)
{
    struct stat st;
    const weir_opt_list *given = &e->a->moments;
    const bool dir = given->n == 1 && stat(given->v[0], &st) == 0 && S_ISDIR(st.st_mode);
    if (given->n && given->n != e->n_layers && !dir)
        return weir_cli_usage(e->cli, "%d layers and %d files of second moments: one for each is needed", e->n_layers,
                              given->n);
    for (int i = 0; i < e->n_layers; i++) {
        e->moments[i].path = dir        ? layer_file(given->v[0], "", e->layer[i])
                             : given->n ? strdup(given->v[i])
                                        : weir_editor_own_moments(e, e->layer[i]);
        if (!e->moments[i].path)
            return weir_cli_error(e->cli, "out of memory");
    }
    return WEIR_EXIT_OK;
}

/* Of a sweep the layers whose file is there; all, if none is. Returns whether any is. */
static bool keep_present(weir_editor *e)
{
    int n = 0;
    for (int i = 0; i < e->n_layers; i++)
        n += access(e->moments[i].path, R_OK) == 0;
    if (!n)
        return false;
    int to = 0;
    for (int i = 0; i < e->n_layers; i++) {
        if (access(e->moments[i].path, R_OK) != 0) {
            free(e->moments[i].path);
            continue;
        }
        const weir_editor_moments m = e->moments[i];
        e->layer[to] = e->layer[i];
        e->moments[i].path = NULL;
        e->moments[to++] = m;
    }
    e->n_layers = n;
    return true;
}

/* Three squares of the width for each layer at once: no thing for large models. */
static int check_room(const weir_editor *e)
{
    const double bytes = 24.0 * (double)e->n_layers * (double)e->info->F * (double)e->info->F;
    if (bytes <= 4e9)
        return WEIR_EXIT_OK;
    return weir_cli_error(
        e->cli,
        "second moments of %d layers of %lld neurons would take %.0f GB: make files of a few layers with "
        "rome stats, and name them with --layer and --moments",
        e->n_layers, (long long)e->info->F, bytes / 1e9);
}

static int make_moments(weir_editor *e, const char *path, int64_t enough)
{
    weir_err err = {0};
    weir_rome_texts t = {0};
    const weir_row_args rows = {.bos = e->a->bos};
    bool bos;
    weir_moments **m = calloc((size_t)e->n_layers, sizeof *m);
    int code = m ? check_room(e) : weir_cli_error(e->cli, "out of memory");
    if (code == WEIR_EXIT_OK)
        code = weir_rome_texts_read(&t, e->cli, path, true);
    if (code == WEIR_EXIT_OK && weir_feed_bos(&rows, e->tok, &bos, &err) != WEIR_OK)
        code = weir_cli_bad_argument(e->cli, NULL, &err);
    if (code == WEIR_EXIT_OK)
        code = weir_rome_keys(e, &t, bos, enough, m);
    for (int i = 0; i < e->n_layers && code == WEIR_EXIT_OK; i++) {
        weir_editor_moments *to = &e->moments[i];
        free(to->path);
        to->path = strdup(path);
        to->made = true;
        to->count = weir_moments_count(m[i]);
        memcpy(to->sha256, t.sha256, sizeof to->sha256);
        if (!to->path)
            code = weir_cli_error(e->cli, "out of memory");
        else if (weir_covariance_new(&to->covariance, weir_moments_sum(m[i]), e->info->F, to->count, e->a->ridge,
                                     &err) != WEIR_OK)
            code = weir_cli_fail_at(e->cli, path, &err);
    }
    for (int i = 0; m && i < e->n_layers; i++)
        weir_moments_free(m[i]);
    free(m);
    weir_rome_texts_free(&t);
    return code;
}

/* A sweep without a file: over the sentences that lie with the model, until each neuron has ten keys. */
static int make_own_moments(weir_editor *e)
{
    char *path = weir_rome_model_file(e, "sentences.txt");
    if (!path)
        return weir_cli_error(e->cli, "out of memory");
    const int code =
        access(path, R_OK) == 0
            ? make_moments(e, path, 10 * e->info->F)
            : weir_cli_error(e->cli, "there are no second moments to try layers with: --stats-text FILE makes "
                                     "them over a text (or --identity does without)");
    free(path);
    return code;
}

static int use_identity(weir_editor *e)
{
    weir_err err = {0};
    for (int i = 0; i < e->n_layers; i++)
        if (weir_covariance_identity(&e->moments[i].covariance, e->info->F, &err) != WEIR_OK)
            return weir_cli_fail(e->cli, &err);
    return WEIR_EXIT_OK;
}

static int get_moments(weir_editor *e)
{
    if (e->a->identity)
        return use_identity(e);
    int code = plan_moments(e);
    if (code != WEIR_EXIT_OK)
        return code;
    if (e->a->stats_text)
        return make_moments(e, e->a->stats_text, 0);
    if (e->sweep && !keep_present(e))
        return make_own_moments(e);
    for (int i = 0; i < e->n_layers && code == WEIR_EXIT_OK; i++)
        code = read_moments(e, &e->moments[i], e->layer[i]);
    return code;
}

int weir_editor_open_moments(weir_editor *e)
{
    e->moments = calloc((size_t)e->n_layers, sizeof *e->moments);
    e->covariance = calloc((size_t)e->n_layers, sizeof *e->covariance);
    if (!e->moments || !e->covariance)
        return weir_cli_error(e->cli, "out of memory");
    const int code = get_moments(e);
    for (int i = 0; i < e->n_layers; i++)
        e->covariance[i] = e->moments[i].covariance;
    return code;
}
