// The kitchen in JavaScript. `none` is undefined, flags are an object of booleans, and an `err` is thrown.

const prices = { soup: 450, steak: 1990 };

const levels = ["rare", "medium", "well-done"];

let bellRings = 0;

export const kitchen = {
  add: (a, b) => (a + b) | 0,

  join: (words, separator) => words.join(separator),

  countDishes: (lines) => lines.reduce((sum, line) => sum + line.quantity, 0),

  oneMore: (line) => ({ ...line, quantity: (line.quantity + 1) & 0xff }),

  advance(state) {
    switch (state.tag) {
      case "queued":
        return state.val > 0 ? { tag: "queued", val: state.val - 1 } : { tag: "cooking" };
      case "cooking":
        return { tag: "served", val: "1" };
      default:
        return state;
    }
  },

  cookLonger: (level) => levels[Math.min(levels.indexOf(level) + 1, levels.length - 1)],

  clash: (guest, dish) => ({
    gluten: guest.gluten && dish.gluten,
    nuts: guest.nuts && dish.nuts,
    milk: guest.milk && dish.milk,
  }),

  find: (lines, dish) => lines.find((line) => line.dish === dish),

  price(dish) {
    if (dish === "") throw { tag: "closed" };
    // Only what is on the menu, not what every object inherits: "toString" is no dish.
    if (!Object.hasOwn(prices, dish)) throw { tag: "unknown-dish", val: dish };
    return prices[dish];
  },

  // A loop, because spreading a long list into Math.min overflows the stack.
  minMax(numbers) {
    let [min, max] = [numbers[0] ?? 0, numbers[0] ?? 0];
    for (const number of numbers) {
      min = Math.min(min, number);
      max = Math.max(max, number);
    }
    return [min, max];
  },

  reverse: (bytes) => bytes.toReversed(),

  ringBell() {
    bellRings += 1;
  },
};
