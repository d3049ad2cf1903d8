/* tokenizer/chat_impl.h: the insides of weir/chat.h: a template is cut into tokens (chat_lex.c), parsed into a tree
 * (chat_parse.c), and the tree is walked (chat_run.c) over values (chat_value.c), with the filters, tests and methods
 * of chat_call.c. CHAT.md says which part of Jinja this is.
 */
#ifndef WEIR_CHAT_IMPL_H
#define WEIR_CHAT_IMPL_H

#include <weir/chat.h>

#include <weir/json.h>

#include "base/mem.h"

/* --- tokens */

typedef enum weir_chat_token_kind {
    WEIR_CHAT_DATA,        /* text as it stands */
    WEIR_CHAT_PRINT_BEGIN, /* {{ */
    WEIR_CHAT_PRINT_END,
    WEIR_CHAT_BLOCK_BEGIN, /* {% */
    WEIR_CHAT_BLOCK_END,
    WEIR_CHAT_NAME,
    WEIR_CHAT_TEXT, /* a string, its escapes undone */
    WEIR_CHAT_NUMBER,
    WEIR_CHAT_SIGN, /* an operator or bracket */
    WEIR_CHAT_EOF
} weir_chat_token_kind;

typedef struct weir_chat_token {
    weir_chat_token_kind kind;
    int line;
    weir_str s;
    int64_t number;
} weir_chat_token;

/* A source, and where errors about it go. */
typedef struct weir_chat_source {
    const char *name;
    weir_str text;
    weir_arena *arena; /* of what is made of it */
    weir_err *err;
} weir_chat_source;

/* "line 3: ...", with the source's name. */
weir_status weir_chat_fail(const weir_chat_source *src, weir_status code, int line, const char *fmt, ...)
    WEIR_PRINTF(4, 5);
WEIR_CHECKED weir_status weir_chat_lex(const weir_chat_source *src, weir_chat_token **out);

/* --- the tree */

typedef enum weir_chat_kind {
    /* expressions */
    WEIR_CHAT_CONST_TEXT,
    WEIR_CHAT_CONST_NUMBER,
    WEIR_CHAT_CONST_TRUE,
    WEIR_CHAT_CONST_FALSE,
    WEIR_CHAT_CONST_NONE,
    WEIR_CHAT_VARIABLE,  /* s */
    WEIR_CHAT_LIST,      /* args */
    WEIR_CHAT_DICT,      /* args: key, value, key, ... */
    WEIR_CHAT_ATTRIBUTE, /* a.s */
    WEIR_CHAT_ITEM,      /* a[b] */
    WEIR_CHAT_SLICE,     /* a[args[0]:args[1]:args[2]], NULL where absent */
    WEIR_CHAT_CALL,      /* a(args) */
    WEIR_CHAT_FILTER,    /* a | s(args) */
    WEIR_CHAT_TEST,      /* a is s(args) */
    WEIR_CHAT_UNARY,     /* s a: "not", "-", "+" */
    WEIR_CHAT_BINARY,    /* a s b: "or", "and", "+", "==", "in", "not in", ... */
    WEIR_CHAT_CHOICE,    /* a if b else c; c NULL: undefined */
    WEIR_CHAT_CHAIN, /* comparisons that share operands, a < b < c: args are BINARY, of which a is NULL but in the first
                      */
    /* statements */
    WEIR_CHAT_OUT_TEXT, /* s */
    WEIR_CHAT_OUT,      /* a */
    WEIR_CHAT_IF,       /* a; body; other */
    WEIR_CHAT_FOR,      /* s (and t) in a, if b; body; other where nothing came */
    WEIR_CHAT_SET,      /* s = a, or s.t = a */
    WEIR_CHAT_BREAK,
    WEIR_CHAT_CONTINUE
} weir_chat_kind;

typedef struct weir_chat_node {
    weir_chat_kind kind;
    int line;
    weir_str s, t;
    int64_t number;
    struct weir_chat_node *a, *b, *c;
    struct weir_chat_node **args; /* [n] */
    weir_str *names;              /* [n] of keyword arguments, p NULL for others; NULL: there are none */
    int n;
    struct weir_chat_node *body, *other, *next; /* statements */
} weir_chat_node;

/* *out: the first statement, NULL for an empty template. */
WEIR_CHECKED weir_status weir_chat_parse(const weir_chat_source *src, const weir_chat_token *token,
                                         weir_chat_node **out);

/* --- values */

typedef enum weir_chat_type {
    WEIR_CHAT_UNDEFINED,
    WEIR_CHAT_NONE,
    WEIR_CHAT_BOOL,
    WEIR_CHAT_INT,
    WEIR_CHAT_STR,
    WEIR_CHAT_ARRAY,
    WEIR_CHAT_MAP,      /* a dict */
    WEIR_CHAT_SPACE,    /* a namespace: a map that `set` may write to */
    WEIR_CHAT_FUNCTION, /* a global by its name, s */
    WEIR_CHAT_METHOD    /* s of *of */
} weir_chat_type;

typedef struct weir_chat_value {
    weir_chat_type type;
    int64_t i; /* BOOL, INT */
    weir_str s;
    struct weir_chat_items *items;
    const struct weir_chat_value *of;
} weir_chat_value;

/* An array; or a map: key[i] belongs to v[i]. */
typedef struct weir_chat_items {
    weir_chat_value *v;
    weir_str *key; /* NULL: an array */
    int64_t n, cap;
} weir_chat_items;

extern const char *const weir_chat_type_word[];
bool weir_chat_truth(const weir_chat_value *v);
bool weir_chat_same(weir_str a, weir_str b);
weir_chat_value weir_chat_str(weir_str s);
weir_chat_value weir_chat_bool(bool b);
weir_chat_value weir_chat_int(int64_t i);
/* A new array or map in the arena; items NULL: out of memory. */
weir_chat_value weir_chat_array(weir_arena *a);
weir_chat_value weir_chat_map(weir_arena *a);
/* False: out of memory. put replaces. */
bool weir_chat_push(weir_arena *a, weir_chat_value *array, weir_chat_value v);
bool weir_chat_put(weir_arena *a, weir_chat_value *map, weir_str key, weir_chat_value v);
/* NULL: absent. */
const weir_chat_value *weir_chat_get(const weir_chat_value *map, weir_str key);
/* Bytes of white space (Python's str.isspace) at the begin of s, and at its end. */
size_t weir_chat_space_before(weir_str s);
size_t weir_chat_space_behind(weir_str s);

/* --- a run */

typedef struct weir_chat_variable {
    weir_str name;
    weir_chat_value v;
} weir_chat_variable;

typedef struct weir_chat_run {
    const weir_chat_source *src;
    weir_arena *arena;
    weir_buf *out;
    weir_chat_variable *var; /* [n_var] inner ones last */
    size_t n_var, frame;     /* frame: the first of the innermost loop */
    int64_t steps;
    int depth;
} weir_chat_run;

weir_status weir_chat_no_memory(const weir_chat_run *r);
/* An expression is a step; so are this many bytes of a new string or of the text; an element of a new list is some, a
 * turn of a loop more. Steps are counted wherever a template can make work, so that they bound the memory as well as
 * the time that it takes: values may hold each other many times over. */
enum { WEIR_CHAT_STEP_BYTES = 16, WEIR_CHAT_STEPS_ITEM = 4 };
WEIR_CHECKED weir_status weir_chat_spend(weir_chat_run *r, int line, size_t steps);
/* A step one level deeper, in an expression or a value; who has come back from it takes one off r->depth. */
WEIR_CHECKED weir_status weir_chat_enter(weir_chat_run *r, int line);
WEIR_CHECKED weir_status weir_chat_walk(weir_chat_run *r, const weir_chat_node *first);
/* Sets a variable of the innermost frame. */
WEIR_CHECKED weir_status weir_chat_set(weir_chat_run *r, weir_str name, weir_chat_value v);
WEIR_CHECKED weir_status weir_chat_equal(weir_chat_run *r, int line, const weir_chat_value *a, const weir_chat_value *b,
                                         bool *out);
/* Its text, as {{ }} writes it. */
WEIR_CHECKED weir_status weir_chat_text(weir_chat_run *r, int line, const weir_chat_value *v, weir_str *out);
/* JSON as Python's json.dumps writes it. */
WEIR_CHECKED weir_status weir_chat_json(weir_chat_run *r, int line, const weir_chat_value *v, weir_str *out);

/* Arguments, evaluated. name[i].p NULL: by place. */
typedef struct weir_chat_args {
    const weir_chat_value *v;
    const weir_str *name;
    int n;
} weir_chat_args;
WEIR_CHECKED weir_status weir_chat_filter(weir_chat_run *r, const weir_chat_node *at, const weir_chat_value *v,
                                          const weir_chat_args *args, weir_chat_value *out);
WEIR_CHECKED weir_status weir_chat_test(weir_chat_run *r, const weir_chat_node *at, const weir_chat_value *v,
                                        const weir_chat_args *args, bool *out);
WEIR_CHECKED weir_status weir_chat_call(weir_chat_run *r, const weir_chat_node *at, const weir_chat_value *f,
                                        const weir_chat_args *args, weir_chat_value *out);

#endif
