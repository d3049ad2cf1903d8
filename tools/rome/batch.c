#include "batch.h"

#include <stdlib.h>
#include <string.h>

#include "cli/say.h"
#include "texts.h"

int weir_batch_one(weir_batch_requests *b, const weir_cli *cli, const char *prompt, const char *subject,
                   const char *target)
{
    const char *at = strstr(prompt, subject);
    const size_t n = at ? (size_t)(at - prompt) : 0;
    *b = (weir_batch_requests){.q = calloc(1, sizeof *b->q), .n = 1, .prompt = malloc(strlen(prompt) + 3)};
    if (!b->q || !b->prompt)
        return weir_cli_error(cli, "out of memory");
    strcpy(b->prompt, prompt);
    *b->q = (weir_rome_request){b->prompt, subject, target};
    if (strstr(prompt, "{}"))
        return WEIR_EXIT_OK;
    if (!at)
        return weir_cli_usage(cli, "--prompt \"%s\" has no {}, and \"%s\" does not stand in it", prompt, subject);
    if (strstr(at + 1, subject))
        return weir_cli_usage(cli, "\"%s\" stands in --prompt more than once: put {} where the subject is", subject);
    strcpy(b->prompt + n, "{}");
    strcpy(b->prompt + n + 2, at + strlen(subject));
    return WEIR_EXIT_OK;
}

/* Blanks around an answer do not count. */
static bool same_answer(const char *a, const char *b)
{
    a += strspn(a, " "), b += strspn(b, " ");
    return strcmp(a, b) == 0;
}

static int check_conflicts(const weir_batch_requests *b, const weir_cli *cli, const char *path, int64_t first)
{
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t j = i + 1; j < b->n; j++) {
            const weir_rome_request *x = &b->q[i], *y = &b->q[j];
            if (strcmp(x->prompt, y->prompt) != 0 || strcmp(x->subject, y->subject) != 0)
                continue;
            if (same_answer(x->target, y->target))
                return weir_cli_error(cli, "%s: records %lld and %lld are the same request (\"%s\", %s): leave one out",
                                      path, (long long)(first + i), (long long)(first + j), x->prompt, x->subject);
            return weir_cli_error(
                cli, "%s: records %lld and %lld contradict each other: \"%s\" of %s is to be %s and %s", path,
                (long long)(first + i), (long long)(first + j), x->prompt, x->subject, x->target, y->target);
        }
    return WEIR_EXIT_OK;
}

int weir_batch_read(weir_batch_requests *b, const weir_cli *cli, const char *path, const char *records)
{
    weir_err err = {0};
    int64_t first, end;
    *b = (weir_batch_requests){0};
    if (weir_fact_list_read(&b->facts, path, &err) != WEIR_OK)
        return weir_cli_fail(cli, &err);
    const int code = weir_rome_range(cli, records, weir_fact_list_n(b->facts), &first, &end);
    if (code != WEIR_EXIT_OK)
        return code;
    b->n = end - first;
    b->q = calloc((size_t)b->n, sizeof *b->q);
    if (!b->q)
        return weir_cli_error(cli, "out of memory");
    for (int64_t i = 0; i < b->n; i++) {
        const weir_fact *f = weir_fact_list_at(b->facts, first + i);
        b->q[i] = (weir_rome_request){f->prompt, f->subject, f->target};
    }
    return check_conflicts(b, cli, path, first);
}

void weir_batch_free(weir_batch_requests *b)
{
    free(b->q);
    free(b->prompt);
    weir_fact_list_free(b->facts);
    *b = (weir_batch_requests){0};
}
