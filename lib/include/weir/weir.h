/* weir/weir.h: everything. Start reading at model.h, then run.h and hook.h. */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include "base.h"
#include "hook.h"
#include "json.h"
#include "model.h"
#include "neurons.h"
#include "record.h"
#include "run.h"
#include "tensor.h"
#include "text.h"
#include "tokenizer.h"
#include "values.h"

#endif
