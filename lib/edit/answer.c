/* Prompts, and the tokens of an answer behind them. */
#include <string.h>

#include <weir/facts.h>

#include "../base/mem.h"
#include "answer.h"

weir_status weir_answer_find(const weir_tokenizer *tok, weir_str prompt, const char *answer, weir_tokens *t,
                             int64_t *first, weir_err *err)
{
    weir_buf text = {0};
    answer += strspn(answer, " ");
    weir_status s = weir_buf_add(&text, prompt.p, prompt.n);
    if (s == WEIR_OK && prompt.n)
        s = weir_buf_add(&text, " ", 1);
    if (s == WEIR_OK)
        s = weir_buf_add(&text, answer, strlen(answer));
    s = s == WEIR_OK ? weir_tokenizer_encode(tok, text.p ? text.p : "", text.n, t, err) : weir_nomem(err, "a prompt");
    weir_buf_free(&text);
    WEIR_TRY(s);
    const int64_t end = (int64_t)prompt.n;
    *first = 0;
    while (*first < t->n && t->byte_off[*first] < end)
        ++*first;
    if (!*answer || *first == t->n)
        return weir_fail(err, WEIR_E_ARG, "\"%.200s\" has no token behind \"%.200s\"", answer, prompt.p);
    if (*first > 0 && t->byte_off[*first - 1] + t->byte_len[*first - 1] > end)
        return weir_fail(err, WEIR_E_ARG, "\"%.200s\" begins inside the last token of \"%.200s\"", answer, prompt.p);
    return WEIR_OK;
}

weir_str weir_prompt_trim(const char *prompt)
{
    size_t n = strlen(prompt);
    while (n && (prompt[n - 1] == ' ' || prompt[n - 1] == '\n'))
        n--;
    return (weir_str){prompt, n};
}

char *weir_fact_prompt(const char *prompt, const char *subject)
{
    const char *at = strstr(prompt, "{}");
    const size_t n = strlen(prompt), before = at ? (size_t)(at - prompt) : n, subject_n = at ? strlen(subject) : 0;
    char *text = weir_calloc(n + subject_n + 1, 1);
    if (!text)
        return NULL;
    memcpy(text, prompt, before);
    memcpy(text + before, subject, subject_n);
    if (at)
        memcpy(text + before + subject_n, at + 2, n - before - 2);
    return text;
}

weir_status weir_answer_tokens(const weir_tokenizer *tok, const char *prompt, const char *answer, int32_t **id,
                               int64_t *n, weir_err *err)
{
    weir_tokens t = {0};
    int64_t first;
    *id = NULL, *n = 0;
    weir_status s = weir_answer_find(tok, weir_prompt_trim(prompt), answer, &t, &first, err);
    if (s == WEIR_OK) {
        *id = weir_calloc((size_t)(t.n - first), sizeof **id);
        if (*id) {
            *n = t.n - first;
            memcpy(*id, t.id + first, (size_t)*n * sizeof **id);
        } else {
            s = weir_nomem(err, "the tokens of an answer");
        }
    }
    weir_tokens_free(&t);
    return s;
}
