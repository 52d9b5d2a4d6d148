;; The core half of the component; wit-component lifts it by the WIT beside it.
;; A map travels like a list of pairs: pointer and length. A list of fixed length travels as that many plain parameters.
;; Results are written to the return area at 0.
(module
  (memory (export "memory") 1)
  (global $free (mut i32) (i32.const 1024))

  ;; Never frees. Aligns, and asks for as many pages as the end of the block needs.
  (func (export "cabi_realloc") (param $old i32) (param $old-size i32) (param $align i32) (param $size i32) (result i32)
    (local $start i32)
    (local.set $start
      (i32.and
        (i32.add (global.get $free) (i32.sub (local.get $align) (i32.const 1)))
        (i32.sub (i32.const 0) (local.get $align))))
    (global.set $free (i32.add (local.get $start) (local.get $size)))
    (block $fits
      (br_if $fits (i32.le_u (global.get $free) (i32.shl (memory.size) (i32.const 16))))
      (br_if $fits
        (i32.ne
          (memory.grow (i32.add (i32.shr_u (local.get $size) (i32.const 16)) (i32.const 1)))
          (i32.const -1)))
      unreachable)
    (local.get $start))

  (func $return-list (param $pointer i32) (param $length i32) (result i32)
    (i32.store (i32.const 0) (local.get $pointer))
    (i32.store (i32.const 4) (local.get $length))
    (i32.const 0))
  (export "test:every-type-extra/echo@0.1.0#echo-map" (func $return-list))
  (export "test:every-type-extra/echo@0.1.0#echo-map-by-number" (func $return-list))

  (func (export "test:every-type-extra/echo@0.1.0#echo-four-bytes") (param i32 i32 i32 i32) (result i32)
    (i32.store8 (i32.const 0) (local.get 0))
    (i32.store8 (i32.const 1) (local.get 1))
    (i32.store8 (i32.const 2) (local.get 2))
    (i32.store8 (i32.const 3) (local.get 3))
    (i32.const 0))
  (func (export "test:every-type-extra/echo@0.1.0#echo-three-floats") (param f32 f32 f32) (result i32)
    (f32.store (i32.const 0) (local.get 0))
    (f32.store (i32.const 4) (local.get 1))
    (f32.store (i32.const 8) (local.get 2))
    (i32.const 0))
  (func (export "test:every-type-extra/echo@0.1.0#echo-attachment") (param i32 i32 i32 i32) (result i32)
    (i32.store (i32.const 0) (local.get 0))
    (i32.store (i32.const 4) (local.get 1))
    (i32.store (i32.const 8) (local.get 2))
    (i32.store (i32.const 12) (local.get 3))
    (i32.const 0)))
