# Writes ${OUT}, a C++ file that defines ${FUNCTION} of ${HEADER} in ${NAMESPACE}: the text of ${TEXT}.
# Run as a script: cmake -DOUT= -DTEXT= -DHEADER= -DNAMESPACE= -DFUNCTION= -P EmbedText.cmake
file(READ "${TEXT}" text)
string(FIND "${text}" ")WAVETANK\"" found)
if(NOT found EQUAL -1)
  message(FATAL_ERROR "${TEXT} contains the literal's end mark")
endif()
file(WRITE "${OUT}" "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\nstd::string_view ${FUNCTION}() {\n"
  "  static constexpr char kText[] = R\"WAVETANK(")
file(APPEND "${OUT}" "${text}")
file(APPEND "${OUT}" ")WAVETANK\";\n  return {kText, sizeof(kText) - 1};\n}\n\n}  // namespace ${NAMESPACE}\n")
