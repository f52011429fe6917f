from django.db import migrations, models

ID = {
    "auto_created": True,
    "primary_key": True,
    "serialize": False,
    "verbose_name": "ID",
}


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Owner",
            fields=[
                ("id", models.BigAutoField(**ID)),
                ("title", models.CharField(max_length=40, unique=True)),
                ("old", models.IntegerField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Account",
            fields=[
                ("id", models.BigAutoField(**ID)),
                (
                    "balance",
                    models.DecimalField(decimal_places=2, default=0, max_digits=12),
                ),
                ("opened", models.DateTimeField(auto_now_add=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=models.deletion.CASCADE,
                        related_name="accounts",
                        to="django_project.owner",
                    ),
                ),
            ],
        ),
    ]
