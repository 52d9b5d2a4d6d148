;; Takes all the memory it can get, then dies of its own surprise, as allocators of real guests do.
(component
  (core module $code
    (memory 1)
    (table $table 0 funcref)

    ;; 16 MiB at a time until the host refuses.
    (func (export "bomb") (result i32)
      (loop $more
        (br_if $more (i32.ne (memory.grow (i32.const 256)) (i32.const -1))))
      unreachable)
    ;; The same with tables, which take host memory too: a million elements at a time.
    (func (export "bomb-table") (result i32)
      (loop $more
        (br_if $more
          (i32.ne (table.grow $table (ref.null func) (i32.const 1000000)) (i32.const -1))))
      unreachable)
    (func (export "add") (param i32 i32) (result i32)
      (i32.add (local.get 0) (local.get 1))))
  (core instance $guest (instantiate $code))

  (func (export "bomb") (result u32) (canon lift (core func $guest "bomb")))
  (func (export "bomb-table") (result u32) (canon lift (core func $guest "bomb-table")))
  (func (export "add") (param "a" s32) (param "b" s32) (result s32)
    (canon lift (core func $guest "add"))))
