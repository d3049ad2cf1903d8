/* generate/job.h: one run of weir generate: prompts become sequences, sequences grow token by token, and are shown.
 *
 *     generate.c   options; the order of the work
 *     prompts.c    text to prompts, and these to sequences
 *     decode.c     passes over many sequences at once
 *     text.c       a sequence's text: what may be shown of it yet, and where it stops
 *     record.c     --dump
 *     show.c       text, tsv, ndjson, json
 *     compare.c    --compare: two texts side by side
 */
#ifndef WEIR_GENERATE_JOB_H
#define WEIR_GENERATE_JOB_H

#include "cli/printable.h"
#include "cli/session.h"

typedef enum weir_gen_format { WEIR_GEN_TEXT, WEIR_GEN_TSV, WEIR_GEN_NDJSON, WEIR_GEN_JSON } weir_gen_format;

typedef struct weir_gen_args {
    weir_session_args session;
    int64_t max_tokens, samples, top_k, seed, width;
    double temperature, top_p, min_p, repetition_penalty;
    weir_opt_list stop, stop_id;
    bool ignore_eos, logprob, compare, force;
    int format, colour;
    const char *dump;
    weir_opt_list layers, hooks, sites;
} weir_gen_args;

typedef struct weir_gen_prompt {
    weir_batch_doc doc; /* a copy, without its text */
    char *text;         /* bytes of the document as it was given; of ids, and of a chat, the text of their tokens */
    size_t text_n;
    weir_tokens t; /* what is run, BOS and template included */
    bool bos;      /* t begins with a BOS that the text does not have */
} weir_gen_prompt;

/* Why a sequence ended. */
typedef enum weir_gen_end {
    WEIR_GEN_RUNNING,
    WEIR_GEN_EOS,     /* a token that ends texts */
    WEIR_GEN_STOP_ID, /* one of --stop-id */
    WEIR_GEN_STOP,    /* one of --stop */
    WEIR_GEN_LENGTH,  /* --max-tokens */
    WEIR_GEN_CONTEXT, /* the context is full */
    WEIR_GEN_CUT      /* a signal, or a hook that has seen enough */
} weir_gen_end;
extern const char *const weir_gen_end_word[];

/* A growing sequence. Nothing moves once it was made. */
typedef struct weir_gen_seq {
    const weir_gen_prompt *prompt;
    int64_t sample;
    int32_t *id;    /* [n] of at most [room]: the prompt's, then those that were generated */
    float *logprob; /* [n] of each given those before it, NaN where unknown; NULL: not wanted */
    int64_t n, room;
    int64_t done; /* tokens that the model has run */
    int slot;     /* -1: it has none */
    char *text;   /* [text_n] of what was generated, cut before what stopped it */
    size_t text_n, text_room;
    size_t shown;   /* bytes of it that are on standard output */
    bool announced; /* so is its prompt */
    weir_gen_end end;
    const char *stop; /* WEIR_GEN_STOP: which */
    bool last_run;    /* it has ended, but its last token is still to be run, for the dump */
} weir_gen_seq;

typedef struct weir_gen_job weir_gen_job;

/* Sequences that a run works on: those of the command line, or of the model as it is (--compare). */
typedef struct weir_gen_arm {
    weir_run *run;
    weir_gen_seq *seq;                               /* [job.n_seq] */
    void (*grown)(weir_gen_job *j, weir_gen_seq *s); /* it has a token more, or has ended; NULL: nobody asks */
} weir_gen_arm;

struct weir_gen_job {
    weir_cli *cli;
    const weir_gen_args *a;
    weir_session session;
    weir_gen_format format;
    weir_gen_prompt *prompt; /* [n_prompts] */
    int64_t n_prompts, n_seq;
    weir_gen_arm arm, plain; /* plain: --compare alone */
    weir_run *plain_run;
    weir_sampling sampling;
    int32_t *end_id; /* [n_ends] ids that end a sequence: first those of the model, then those of --stop-id */
    int64_t n_ends, n_eos;
    struct weir_gen_record *record; /* --dump */
    int64_t front;                  /* the sequence that is shown now; those before it are through */
    bool terminal;                  /* standard output is one */
    int shade;                      /* weir_colour that it takes */
    int64_t rows, generated;        /* run; new tokens */
    double seconds;                 /* of decoding */
};

/* --- prompts.c. Functions that return an exit code have said the error. */
int weir_gen_prompts_read(weir_gen_job *j);
/* Makes the arm's sequences: prompt by prompt, sample by sample. */
int weir_gen_sequences(weir_gen_job *j, weir_gen_arm *arm);
void weir_gen_sequences_free(weir_gen_job *j, weir_gen_arm *arm);
void weir_gen_prompts_free(weir_gen_job *j);
/* Tokens of the longest sequence that can come; slots that a run should have. */
int64_t weir_gen_longest(const weir_gen_job *j);
int weir_gen_slots(const weir_gen_job *j);

/* --- decode.c: until every sequence has ended, or a signal comes. */
int weir_gen_decode(weir_gen_job *j, weir_gen_arm *arm);

/* --- text.c */
/* Adds a token's text, and cuts it where a stop string begins. False: out of memory. */
bool weir_gen_text_add(const weir_gen_job *j, weir_gen_seq *s, int32_t id);
/* Bytes of the text that stay whatever comes: what may be the beginning of a stop string or a part of a character is
 * held back until the sequence has ended. */
size_t weir_gen_text_safe(const weir_gen_job *j, const weir_gen_seq *s);
/* Appends bytes as a terminal may have them: what would act on it is written \xNN; line breaks and tabs stay. */
void weir_gen_printable(weir_text *t, const char *p, size_t n);

/* --- record.c */
int weir_gen_record_open(weir_gen_job *j);
/* The pass that has just ended ran tokens [from, to) of s. */
weir_status weir_gen_record_rows(weir_gen_job *j, weir_gen_seq *s, int64_t from, int64_t to, weir_err *err);
/* keep: an error has come. */
int weir_gen_record_close(weir_gen_job *j, int code);

/* --- show.c */
void weir_gen_show_grown(weir_gen_job *j, weir_gen_seq *s);
/* Behind the last token: what is still held back, and for --json everything. */
void weir_gen_show_end(weir_gen_job *j);
/* A sequence's members in an object that is open. */
void weir_gen_put_seq(weir_jsonw *w, const weir_gen_seq *s);
/* Text for the terminal if it is one: what would act on it is escaped. Else the bytes. */
void weir_gen_put_text(const weir_gen_job *j, const char *p, size_t n);

/* --- compare.c */
int weir_gen_compare(weir_gen_job *j);

#endif
