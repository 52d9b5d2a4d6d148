/* The kitchen in C. wit-bindgen hands over arguments that we own: what is neither moved into the result nor freed leaks. */

#include "cook.h"

#include <stdlib.h>
#include <string.h>

typedef exports_test_kitchen_kitchen_order_line_t line_t;
typedef exports_test_kitchen_kitchen_list_order_line_t lines_t;
typedef exports_test_kitchen_kitchen_order_state_t state_t;
typedef exports_test_kitchen_kitchen_doneness_t doneness_t;
typedef exports_test_kitchen_kitchen_allergens_t allergens_t;
typedef exports_test_kitchen_kitchen_refusal_t refusal_t;

static uint32_t bell_rings;

static bool same(const cook_string_t *a, const cook_string_t *b) {
  return a->len == b->len && memcmp(a->ptr, b->ptr, a->len) == 0;
}

static bool is(const cook_string_t *text, const char *word) {
  return text->len == strlen(word) && memcmp(text->ptr, word, text->len) == 0;
}

int32_t exports_test_kitchen_kitchen_add(int32_t a, int32_t b) {
  /* Unsigned, because signed overflow is undefined in C. */
  return (int32_t)((uint32_t)a + (uint32_t)b);
}

void exports_test_kitchen_kitchen_join(cook_list_string_t *words, cook_string_t *separator, cook_string_t *ret) {
  size_t size = 0;
  for (size_t i = 0; i < words->len; i++) size += words->ptr[i].len + (i > 0 ? separator->len : 0);

  uint8_t *out = malloc(size > 0 ? size : 1);
  if (out == NULL) abort();
  ret->ptr = out;
  ret->len = size;
  for (size_t i = 0; i < words->len; i++) {
    if (i > 0) {
      memcpy(out, separator->ptr, separator->len);
      out += separator->len;
    }
    memcpy(out, words->ptr[i].ptr, words->ptr[i].len);
    out += words->ptr[i].len;
  }
  cook_list_string_free(words);
  cook_string_free(separator);
}

uint32_t exports_test_kitchen_kitchen_count_dishes(lines_t *lines) {
  uint32_t sum = 0;
  for (size_t i = 0; i < lines->len; i++) sum += lines->ptr[i].quantity;
  exports_test_kitchen_kitchen_list_order_line_free(lines);
  return sum;
}

void exports_test_kitchen_kitchen_one_more(line_t *line, line_t *ret) {
  *ret = *line;
  ret->quantity++;
}

void exports_test_kitchen_kitchen_advance(state_t *state, state_t *ret) {
  *ret = *state;
  switch (state->tag) {
    case EXPORTS_TEST_KITCHEN_KITCHEN_ORDER_STATE_QUEUED:
      if (state->val.queued > 0) {
        ret->val.queued--;
      } else {
        ret->tag = EXPORTS_TEST_KITCHEN_KITCHEN_ORDER_STATE_COOKING;
      }
      break;
    case EXPORTS_TEST_KITCHEN_KITCHEN_ORDER_STATE_COOKING:
      ret->tag = EXPORTS_TEST_KITCHEN_KITCHEN_ORDER_STATE_SERVED;
      cook_string_dup(&ret->val.served, "1");
      break;
  }
}

doneness_t exports_test_kitchen_kitchen_cook_longer(doneness_t level) {
  return level < EXPORTS_TEST_KITCHEN_KITCHEN_DONENESS_WELL_DONE ? level + 1 : level;
}

allergens_t exports_test_kitchen_kitchen_clash(allergens_t guest, allergens_t dish) {
  return guest & dish;
}

bool exports_test_kitchen_kitchen_find(lines_t *lines, cook_string_t *dish, line_t *ret) {
  bool found = false;
  for (size_t i = 0; i < lines->len && !found; i++) {
    line_t *line = &lines->ptr[i];
    if (same(&line->dish, dish)) {
      *ret = *line;
      /* The line has moved: what stays behind must own nothing. */
      memset(line, 0, sizeof *line);
      found = true;
    }
  }
  exports_test_kitchen_kitchen_list_order_line_free(lines);
  cook_string_free(dish);
  return found;
}

bool exports_test_kitchen_kitchen_price(cook_string_t *dish, uint32_t *ret, refusal_t *err) {
  if (is(dish, "soup") || is(dish, "steak")) {
    *ret = is(dish, "soup") ? 450 : 1990;
    cook_string_free(dish);
    return true;
  }
  if (dish->len == 0) {
    err->tag = EXPORTS_TEST_KITCHEN_KITCHEN_REFUSAL_CLOSED;
  } else {
    err->tag = EXPORTS_TEST_KITCHEN_KITCHEN_REFUSAL_UNKNOWN_DISH;
    err->val.unknown_dish = *dish;
  }
  return false;
}

void exports_test_kitchen_kitchen_min_max(cook_list_f64_t *numbers, cook_tuple2_f64_f64_t *ret) {
  ret->f0 = ret->f1 = numbers->len > 0 ? numbers->ptr[0] : 0;
  for (size_t i = 1; i < numbers->len; i++) {
    double number = numbers->ptr[i];
    if (number < ret->f0) ret->f0 = number;
    if (number > ret->f1) ret->f1 = number;
  }
  cook_list_f64_free(numbers);
}

void exports_test_kitchen_kitchen_reverse(cook_list_u8_t *bytes, cook_list_u8_t *ret) {
  /* In place: the list is ours. */
  for (size_t i = 0; i < bytes->len / 2; i++) {
    uint8_t byte = bytes->ptr[i];
    bytes->ptr[i] = bytes->ptr[bytes->len - 1 - i];
    bytes->ptr[bytes->len - 1 - i] = byte;
  }
  *ret = *bytes;
}

void exports_test_kitchen_kitchen_ring_bell(void) {
  bell_rings++;
}
