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
  kind.install = "reinstall Penstock: its plugin for " + one + "s is missing";
  kind.settings
      .own(
          &SourceSpec::own,
          SettingsTable<images::PictureSettings>()
              .text("labels", &images::PictureSettings::labels,
                    "CSV, TSV or JSON lines file with the path below \"path\" "
                    "of each " +
                        one +
                        " and its class, if it has one. Default: the name of "
                        "its folder is its class")
              .identity(Identity::written)
              .setting(
                  "classes",
                  settings::list_rule(
                      "Names of all classes in the order of their numbers. A " +
                          one +
                          " of any other class is an error. Default: the "
                          "classes that are found, sorted",
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
                      "Whether the list of the " + one +
                          "s in a folder is kept for the next start. "
                          "auto: kept if there are 10,000 or more")
              .identity(Identity::none))
      .text("path", &SourceSpec::path,
            "A folder that contains one folder per class, or " + one +
                "s without classes; a .tar file, or a pattern of .tar files")
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
