# Writes OUT, which names the commit of SOURCE and how it is BUILT; only if that has changed, so that nothing else is built anew.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 OUTPUT_VARIABLE commit ERROR_QUIET
  OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown")  # an archive without its history
endif()
set(text "#include \"cli/made/commit.h\"\n\nnamespace wavetank::cli {\nstd::string_view Commit() { return \"${commit}\"; }\n")
string(APPEND text "std::string_view Build() { return \"${BUILT}\"; }\n}  // namespace wavetank::cli\n")
set(old "")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
