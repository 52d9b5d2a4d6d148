;; A program that never ends, and never answers anything: not even when asked for help.
(module
  (memory (export "memory") 1)
  (func (export "_start")
    (loop $again (br $again))))
