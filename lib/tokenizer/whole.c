/* whole.c: the question could be answered by merging, but for a whole vocabulary that takes longer than reading it.
 * Where ranks rise from the parts of a token to the token, as in every trained vocabulary, a walk along one border is
 * enough.
 *
 * Let the token be made of l and r, both whole. Inside l and inside r the merges go as if each were alone, unless a
 * pair across the border merges. At any moment the border's neighbours are a, on the right edge of l's tree, and b, on
 * the left edge of r's. The walk goes back in time from (l, r), undoing whichever of a and b was made later. A pair (a,
 * b) with a merge of rank q comes to merge exactly if a and b are still there when q's turn comes: if q is below the
 * rank that uses a up, and not above the one that uses b up (of equal ranks the left place goes first). */
#include "whole.h"

#include "base/mem.h"

/* WHOLE_BY_MERGING: found out by merging, so that the walk may not build on it. */
enum { UNKNOWN, WHOLE, WHOLE_BY_MERGING, NOT_WHOLE };

/* The merge of lowest rank that makes a token. */
typedef struct node {
    int32_t left, right; /* -1: no merge makes it */
    uint32_t rank;
    uint8_t state;
} node;

struct weir_tok_tree {
    const weir_tokenizer *t;
    node *node;
    weir_tok_symbols symbols;
};

weir_status weir_tok_tree_new(weir_tok_tree **out, const weir_tokenizer *t)
{
    weir_tok_tree *tree = weir_calloc(1, sizeof *tree);
    *out = tree;
    if (!tree || !(tree->node = weir_calloc((size_t)t->vocab.n, sizeof *tree->node)))
        return WEIR_E_NOMEM;
    tree->t = t;
    for (int32_t id = 0; id < t->vocab.n; id++)
        tree->node[id].left = -1;
    for (size_t i = 0; i < t->merges.cap; i++) {
        const weir_tok_merge *m = &t->merges.slot[i];
        if (m->made < 0)
            continue;
        node *n = &tree->node[m->made];
        if (n->left < 0 || m->rank < n->rank)
            *n = (node){m->left, m->right, m->rank, UNKNOWN};
    }
    return WEIR_OK;
}

void weir_tok_tree_free(weir_tok_tree *tree)
{
    if (!tree)
        return;
    weir_free(tree->node);
    weir_tok_symbols_free(&tree->symbols);
    weir_free(tree);
}

static weir_status by_merging(weir_tok_tree *tree, int32_t id, weir_str text)
{
    weir_tok_loss loss = {0};
    weir_tok_view v = {(const uint8_t *)text.p, NULL, text.n, 0};
    weir_tok_symbols *s = &tree->symbols;
    WEIR_TRY(weir_tok_bpe(tree->t, &v, 0, text.n, s, &loss));
    bool whole = s->n == 1 && s->id[0] == id && !loss.bytes, leaf = tree->node[id].left < 0;
    tree->node[id].state = !whole ? NOT_WHOLE : leaf ? WHOLE : WHOLE_BY_MERGING;
    return WEIR_OK;
}

/* Whether nothing merges across the border of a and b before the merge of rank `rank` joins them. */
static bool border_holds(const weir_tok_tree *tree, int32_t a, int32_t b, uint32_t rank)
{
    uint32_t uses_a = rank, uses_b = rank, q;
    for (;;) {
        const node *na = &tree->node[a], *nb = &tree->node[b];
        if (na->left < 0 && nb->left < 0)
            return true;
        if (na->left < 0 || (nb->left >= 0 && nb->rank >= na->rank)) {
            uses_b = nb->rank;
            b = nb->left;
        } else {
            uses_a = na->rank;
            a = na->right;
        }
        if (weir_tok_merge_rank(&tree->t->merges, a, b, &q) && q < uses_a && q <= uses_b)
            return false;
    }
}

/* The state of a token whose text is at most WEIR_TOK_WORD_MAX bytes: the parts of it are shorter, so that the depth is
 * bounded. */
static weir_status find_state(weir_tok_tree *tree, int32_t id, weir_str text)
{
    node *n = &tree->node[id];
    if (n->state != UNKNOWN)
        return WEIR_OK;
    if (n->left < 0 || tree->t->equal_ranks)
        return by_merging(tree, id, text);
    size_t cut = tree->t->kind == WEIR_TOK_BYTES ? weir_tok_length(tree->t->vocab.piece[n->left])
                                                 : tree->t->vocab.piece[n->left].n;
    node *l = &tree->node[n->left], *r = &tree->node[n->right];
    WEIR_TRY(find_state(tree, n->left, (weir_str){text.p, cut}));
    WEIR_TRY(find_state(tree, n->right, (weir_str){text.p + cut, text.n - cut}));
    bool rising = (l->left < 0 || l->rank < n->rank) && (r->left < 0 || r->rank < n->rank);
    if (!rising || l->state != WHOLE || r->state != WHOLE)
        return by_merging(tree, id, text);
    n->state = border_holds(tree, n->left, n->right, n->rank) ? WHOLE : NOT_WHOLE;
    return n->state == WHOLE ? WEIR_OK : by_merging(tree, id, text); /* another merge may make it */
}

weir_status weir_tok_is_whole(weir_tok_tree *tree, int32_t id, weir_str text, bool *whole)
{
    *whole = tree->t->ignore_merges;
    if (*whole)
        return WEIR_OK;
    WEIR_TRY(find_state(tree, id, text));
    *whole = tree->node[id].state != NOT_WHOLE;
    return WEIR_OK;
}
