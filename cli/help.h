// Help that fits 80 columns, and what the program says to a call that it does not understand.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace wavetank::cli {

inline constexpr size_t kHelpWidth = 80;

// For `app` and every verb that is added to it afterwards.
void UseHelpFormat(CLI::App& app);
// Lines of at most `width` columns, each after the first `indent` deep; line breaks of `text` stay.
std::string Wrapped(std::string_view text, size_t width, size_t indent);
// "wavetank: 'rnu' is no verb: did you mean 'run'?..."; never empty.
std::string NoSuchVerb(const CLI::App& app, std::string_view word);
// "wavetank: run: '--sed' is no option: did you mean '--seed'? ...": what CLI11 refuses, with the verb's help as
// remedy. A value is not repeated where it may be a secret.
std::string BadCall(const CLI::App& app, const CLI::ParseError& error);

}  // namespace wavetank::cli
