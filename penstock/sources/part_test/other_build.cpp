// The note of another build: see penstock/base/plugin_build.h.
asm(R"note(.pushsection .note.penstock, "a", %note
  .balign 4
  .long 9, 18, 1
  .asciz "penstock"
  .balign 4
  .asciz "0.0.9 (build old)"
  .balign 4
  .popsection)note");
