#include "penstock/sources/images/find_pictures.h"
#include "penstock/sources/kinds.h"

namespace penstock {

namespace {

/// `one` is what a file is: "picture".
SourceKind media_source(const std::string& name, const std::string& one) {
  SourceSpec defaults;
  defaults.kind = name;
  SourceKind kind{.name = name,
                  .shown = "folders of " + one + "s",
                  .prefixes = {name + ":"},
                  .example = name + ":FOLDER",
                  .files = true,
                  .plugin = "images",
                  .settings = SettingsTable<SourceSpec>(defaults)};
  kind.install =
      "install Penstock anew: its plugin for " + one + "s is missing";
  kind.settings
      .own(&SourceSpec::own,
           SettingsTable<images::PictureSettings>()
               .text("labels", &images::PictureSettings::labels,
                     "a file of CSV, TSV or JSON lines with the path of each " +
                         one +
                         " below \"path\" and its class; without it, the "
                         "folder that it is in is its class")
               .identity(Identity::written)
               .setting(
                   "classes",
                   settings::list_rule(
                       "all classes, by their numbers; a " + one +
                           " of another one is an error; default: those "
                           "that are found, sorted",
                       true),
                   [](Spec& spec, const SettingSchema& setting,
                      images::PictureSettings& to) {
                     if (spec.raw(setting.key) != nullptr)
                       to.classes = spec.names(setting.key);
                   },
                   [](const images::PictureSettings& from) {
                     return from.classes.empty()
                                ? Json()
                                : settings::list_of(from.classes);
                   })
               .identity(Identity::written)
               .choice("listing", &images::PictureSettings::listing,
                       {{"auto", images::Listing::automatic},
                        {"kept", images::Listing::kept},
                        {"none", images::Listing::none}},
                       "whether the list of the " + one +
                           "s in class folders is kept for the next start; "
                           "auto: of 10,000 or more")
               .identity(Identity::none))
      .text("path", &SourceSpec::path,
            "a folder with a folder for each class, a .tar file, or a pattern "
            "of such files")
      .required()
      .identity(Identity::written)
      .not_empty();
  return kind;
}

}  // namespace

SourceKind images_source() {
  SourceKind kind = media_source("images", "picture");
  kind.to_build = "libjpeg62-turbo-dev libpng-dev libwebp-dev";
  return kind;
}

SourceKind audio_source() {
  SourceKind kind = media_source("audio", "sound");
  kind.to_build = "libsndfile1-dev";
  return kind;
}

}  // namespace penstock
