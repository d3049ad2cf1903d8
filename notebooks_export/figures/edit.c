/* edit: reports of rome verify (weir-verify): what is opened, and what the parameters choose. What the cells show is
 * drawn in edit/: answers.c, stream.c, text.c, search.c. */
#include <stdlib.h>
#include <string.h>

#include "edit/report.h"
#include "figures/arrays.h"

/* --- parameters */

static int choose(const weir_nb *nb, weir_nb_report *v)
{
    enum { MANY = 1000 };
    int code = weir_nb_int_in(nb, "prompt", 0, v->prompts - 1, &v->chosen);
    if (code == WEIR_EXIT_OK)
        code = weir_nb_int_in(nb, "max_questions", 1, MANY, &v->shown);
    if (code == WEIR_EXIT_OK)
        code = weir_nb_int_in(nb, "bins", 1, MANY, &v->bins);
    if (code == WEIR_EXIT_OK)
        code = weir_nb_int_in(nb, "worst", 0, MANY, &v->worst);
    if (code == WEIR_EXIT_OK)
        code = weir_nb_bool(nb, "relative", &v->relative);
    v->shown = v->shown < v->questions ? v->shown : v->questions;
    return code;
}

/* --- what the file is */

static void tell(weir_nb *nb, const weir_nb_report *v)
{
    int64_t failed = 0;
    weir_nb_tell_attribute(nb, v->r, "model", "model");
    weir_nb_tell_attribute(nb, v->r, "edit", "edit");
    weir_nb_tell_attribute(nb, v->r, "edit_method", "method");
    weir_nb_tell(nb, "size", "%lld request%s, %lld question%s, %lld text%s of %s", (long long)v->requests,
                 weir_nb_s(v->requests), (long long)v->questions, weir_nb_s(v->questions), (long long)v->texts,
                 weir_nb_s(v->texts), v->text_name);
    for (int64_t i = 0; i < v->checks; i++)
        failed += !v->kept[i];
    if (failed)
        weir_nb_tell(nb, "thresholds", "%lld of %lld are not kept", (long long)failed, (long long)v->checks);
    else
        weir_nb_tell(nb, "thresholds", "all are kept");
}

static int open_report(weir_nb *nb, void **data)
{
    weir_nb_report *v = calloc(1, sizeof *v);
    if (!v)
        return weir_nb_no_memory(nb);
    *data = v;
    const int code = weir_nb_report_open(v, nb);
    if (code != WEIR_EXIT_OK)
        return code;
    tell(nb, v);
    return choose(nb, v);
}

static void close_report(void *data)
{
    if (data)
        weir_nb_report_close(data);
    free(data);
}

static const weir_nb_figure figures[] = {{"checks", weir_nb_report_checks}, {"answers", weir_nb_report_answers},
                                         {"greedy", weir_nb_report_greedy}, {"lens", weir_nb_report_lens},
                                         {"stream", weir_nb_report_stream}, {"text", weir_nb_report_text},
                                         {"search", weir_nb_report_search}, {NULL, NULL}};

const weir_nb_kind weir_nb_kind_edit = {
    .name = "edit", .format = "weir-verify", .open = open_report, .close = close_report, .figure = figures};
