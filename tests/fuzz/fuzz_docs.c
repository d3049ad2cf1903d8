/* Documents: an input's first byte chooses how it is read (text or JSONL, how it is split, ids), the rest is the file,
 * gzip by its content. Documents stand in order and inside the source. */
#include <weir/text.h>

#include "driver.h"
#include "parts.h"

static void check_doc(const weir_doc *d, bool ids, int64_t *end)
{
    PROMISE(d->byte_off >= 0 && d->byte_len >= 0 && d->byte_off >= *end);
    PROMISE(ids ? d->n_ids > 0 : d->text.n > 0);
    *end = d->byte_off;
    for (int i = 0; i < d->n_fields; i++)
        PROMISE(d->fields[i].name.p && (d->fields[i].type != WEIR_FIELD_STRING || d->fields[i].str.p));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const char *paths[] = {path};
    uint8_t how = size ? data[0] : 0;
    int fd = parts_memory(size ? data + 1 : data, size ? size - 1 : 0, path);
    weir_docs_options o;
    weir_docs *docs;
    weir_doc d;
    weir_err err = {0};
    int64_t end = 0, n = 0;
    weir_docs_options_init(&o);
    o.paths = paths;
    o.n_paths = 1;
    o.split = (weir_docs_split)(how & 3);
    o.sep = "--";
    o.format = how & 4 ? WEIR_DOCS_JSONL : WEIR_DOCS_TEXT;
    o.ids = how & 8;
    promise_error(weir_docs_open(&docs, &o, &err), &err);
    for (bool more = true; !err.code && more;) {
        promise_error(weir_docs_next(docs, &d, &more, &err), &err);
        if (!err.code && more) {
            check_doc(&d, o.ids, &end);
            PROMISE(d.index == n++);
            PROMISE(weir_docs_progress(docs) <= 1);
        }
    }
    weir_docs_free(docs);
    close(fd);
    return 0;
}
