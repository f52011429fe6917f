from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("django_project", "0001_initial")]
    operations = [
        migrations.RenameField("owner", "title", "name"),
        migrations.AlterField(
            "owner", "name", models.CharField(max_length=60, unique=True)
        ),
        migrations.AlterField("owner", "old", models.IntegerField(default=7)),
        migrations.RemoveField("owner", "old"),
        migrations.AddField("owner", "note", models.TextField(null=True)),
        migrations.AddIndex("owner", models.Index(fields=["note"], name="owner_note")),
        migrations.AddField("account", "extra", models.JSONField(default=dict)),
        migrations.AddField(
            "account",
            "address",
            models.GenericIPAddressField(default="127.0.0.1"),
        ),
        migrations.AddField(
            "account",
            "guarantor",
            models.ForeignKey(
                null=True,
                on_delete=models.deletion.SET_NULL,
                related_name="+",
                to="django_project.owner",
            ),
        ),
        migrations.AddField(
            "account",
            "friends",
            models.ManyToManyField(related_name="+", to="django_project.owner"),
        ),
        migrations.AddConstraint(
            "account",
            models.CheckConstraint(
                condition=models.Q(balance__gte=0), name="balance_is_positive"
            ),
        ),
    ]
