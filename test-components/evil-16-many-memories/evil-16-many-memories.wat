;; Each memory is small, but there are a hundred: 1.6 GiB before the first instruction runs. No call can succeed
;; unless the memory limit is above that, so here even `add` is refused.
(component
  (core module $hoard (memory 256))
  (core module $code
    (func (export "add") (param i32 i32) (result i32)
      (i32.add (local.get 0) (local.get 1))))
  (core instance $guest (instantiate $code))

  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))
  (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard)) (core instance (instantiate $hoard))

  (func (export "add") (param "a" s32) (param "b" s32) (result s32)
    (canon lift (core func $guest "add"))))
