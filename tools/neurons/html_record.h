/* neurons/html_record.h: one neuron in the data of a page, in bytes. page-data.js reads them in the same order. */
#ifndef WEIR_NEURONS_HTML_RECORD_H
#define WEIR_NEURONS_HTML_RECORD_H

#include "html_text.h"

/* What stands in the table, for every neuron: a row of 72 bytes. */
typedef struct weir_html_row {
    double mean, sd, skew, kurtosis, density, effective; /* effective: the polysemanticity score, or NaN */
    float min, max;
    uint32_t unit, length, clusters, table; /* length: of the neuron's record */
} weir_html_row;

/* Tokens and related units shown of a named neuron, at each end. */
enum { WEIR_HTML_MEANS = 20 };
/* Columns of the histogram: half octaves down from the largest magnitude, on both sides of what is small. */
enum { WEIR_HTML_SIDE = 24, WEIR_HTML_COLUMNS = 2 * WEIR_HTML_SIDE + 1 };

typedef struct weir_html {
    const weir_view *v;
    weir_html_text text;
    weir_base64 out;
    weir_html_row *row;   /* [v->n] */
    weir_neuron_hit *hit; /* [weir_section_room] */
    int32_t *cluster;     /* [weir_section_room] */
    weir_err err;
} weir_html;

/* Notes what text and tokens the record of a neuron needs. */
void weir_html_want(weir_html *h, const weir_shown *neuron);
/* Writes the record and fills in the row. False: h->err says why. */
bool weir_html_record(weir_html *h, const weir_shown *neuron, weir_html_row *row);
void weir_html_rows(weir_html *h);

#endif
