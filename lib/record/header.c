/* record/header.c: the root attributes: written, and compared when a run goes on. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "dump.h"
#include "schema.h"

typedef struct text_attribute {
    const char *name, *text;
    bool decides; /* what the rows hold: has to be the same when a run goes on */
} text_attribute;

typedef struct int_attribute {
    const char *name;
    int64_t value;
    bool decides;
} int_attribute;

enum { TEXTS = 15, INTS = 6 };

typedef struct header {
    char now[32], storage[32];
    text_attribute text[TEXTS];
    int_attribute number[INTS];
} header;

void weir_dump_time_utc(char out[32])
{
    time_t t = time(NULL);
    struct tm tm;
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
}

static void fill(header *a, const weir_dump *d, const weir_dump_header *h, const weir_dump_options *o)
{
    weir_dump_time_utc(a->now);
    if (o->f16)
        snprintf(a->storage, sizeof a->storage, "float16");
    else if (o->mantissa)
        snprintf(a->storage, sizeof a->storage, "float32 mantissa %d", o->mantissa);
    else
        snprintf(a->storage, sizeof a->storage, "float32");
    const text_attribute text[TEXTS] = {
        {"format", WEIR_DUMP_FORMAT, true},
        {"weir_version", weir_version(), true},
        {"command_line", o->command_line, false},
        {"time_utc", a->now, false},
        {"model", h->model, false},
        {"family", h->family, true},
        {"fingerprint", h->fingerprint, true},
        {"tokenizer_fingerprint", h->tokenizer_fingerprint, true},
        {"bos", o->bos, true},
        {"dtype", h->dtype, true},
        {"storage", a->storage, true},
        {"kernel", o->kernel, false},
        {"interventions", o->interventions ? o->interventions : "[]", true},
        {"edits", o->edits ? o->edits : "[]", true},
        {"run_options", o->run_options, true},
    };
    const int_attribute number[INTS] = {
        {"format_version", WEIR_DUMP_VERSION, true},
        {"ctx", d->ctx, true},
        {"stride", o->stride, true},
        {"compress", o->compress, true},
        {"threads", o->run_threads, false},
        {"complete", 0, false},
    };
    memcpy(a->text, text, sizeof text);
    memcpy(a->number, number, sizeof number);
}

weir_status weir_dump_put_header(weir_dump *d, const weir_dump_header *h, const weir_dump_options *o, weir_err *err)
{
    header a;
    fill(&a, d, h, o);
    for (int i = 0; i < TEXTS; i++)
        WEIR_TRY(weir_h5_put_str(d->file, a.text[i].name, a.text[i].text, err));
    for (int i = 0; i < INTS; i++)
        WEIR_TRY(weir_h5_put_int(d->file, a.number[i].name, a.number[i].value, err));
    return WEIR_OK;
}

/* Long texts differ somewhere inside: shown from a little before that place. */
static weir_status text_differs(const weir_dump *d, const char *name, const char *had, const char *now, weir_err *err)
{
    enum { BEFORE = 24, SHOWN = 60 };
    size_t at = 0;
    while (had[at] && had[at] == now[at])
        at++;
    bool lead = at > BEFORE && (strlen(had) > SHOWN || strlen(now) > SHOWN);
    size_t from = lead ? at - BEFORE : 0;
    const char *dots = lead ? "..." : "";
    return weir_fail(err, WEIR_E_ARG,
                     "%s was begun with another %s: %s%.*s, and now it is %s%.*s (--force begins again)", d->out.part,
                     name, dots, SHOWN, had + from, dots, SHOWN, now + from);
}

static weir_status check_text(const weir_dump *d, const text_attribute *a, weir_err *err)
{
    char *had;
    const char *now = a->text ? a->text : "";
    WEIR_TRY(weir_h5_get_text(d->file, a->name, &had, err));
    weir_status st = strcmp(had ? had : "", now) ? text_differs(d, a->name, had ? had : "", now, err) : WEIR_OK;
    weir_free(had);
    return st;
}

weir_status weir_dump_check_header(weir_dump *d, const weir_dump_header *h, const weir_dump_options *o, weir_err *err)
{
    header a;
    fill(&a, d, h, o);
    for (int i = 0; i < TEXTS; i++)
        if (a.text[i].decides)
            WEIR_TRY(check_text(d, &a.text[i], err));
    for (int i = 0; i < INTS; i++) {
        int64_t had = 0;
        if (!a.number[i].decides || (weir_h5_get_int(d->file, a.number[i].name, &had) && had == a.number[i].value))
            continue;
        return weir_fail(err, WEIR_E_ARG,
                         "%s was begun with %s %" PRId64 ", and now it is %" PRId64 " (--force begins again)",
                         d->out.part, a.number[i].name, had, a.number[i].value);
    }
    return WEIR_OK;
}
